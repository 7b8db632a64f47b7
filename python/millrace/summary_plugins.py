# SPDX-License-Identifier: Apache-2.0
"""Files that plugins of TensorBoard find beside the events: tensorflow.python.summary.plugin_asset."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph

_COLLECTION = "__plugin_assets"


class PluginAsset:
    """Base of what a plugin keeps in a graph; plugin_name says whose it is."""

    plugin_name: Optional[str] = None

    def assets(self) -> Dict[str, Any]:
        """The contents of files by name."""
        raise NotImplementedError()


def get_plugin_asset(plugin_asset_cls: Any, graph: Any = None) -> Any:
    """The graph's object of a class: made where there is none yet."""
    graph = graph or get_default_graph()
    name = plugin_asset_cls.plugin_name
    if not name:
        raise at_user_line(ValueError("Plugin asset %s must have plugin_name property." % plugin_asset_cls.__name__))
    kept = graph.get_collection_ref(_COLLECTION)
    for asset in kept:
        if asset.plugin_name == name:
            if type(asset) is not plugin_asset_cls:
                raise at_user_line(ValueError("Plugin name %r is taken by %s" % (name, type(asset).__name__)))
            return asset
    kept.append(plugin_asset_cls())
    return kept[-1]


def get_all_plugin_assets(graph: Any = None) -> List[Any]:
    """The objects of a graph."""
    return list((graph or get_default_graph()).get_collection(_COLLECTION))
