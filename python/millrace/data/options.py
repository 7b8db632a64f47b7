# SPDX-License-Identifier: Apache-2.0
"""tf.data.Options: hints, which change no element, and where statistics are kept. There is no tuning here that they could switch off."""

from __future__ import annotations

from typing import Any, Dict, List

from millrace.framework.errors import at_user_line


class _Hints:
    """Attributes of fixed names; others are an AttributeError."""

    _names: Dict[str, Any] = {}

    def __init__(self) -> None:
        object.__setattr__(self, "_given", {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError("%s has no attribute %r" % (type(self).__name__, name))
        made = self._names[name]
        return self._given.setdefault(name, made()) if callable(made) else self._given.get(name, made)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names:
            raise at_user_line(AttributeError("Cannot set the property %s on %s." % (name, type(self).__name__)))
        self._given[name] = value

    def merge(self, options: "_Hints") -> "_Hints":
        """These, with those that the other has been given. ValueError where both were given other values."""
        made = type(self)()
        made._given.update(self._given)
        for name, value in options._given.items():
            mine = made._given.get(name)
            if isinstance(mine, _Hints) and isinstance(value, _Hints):
                value = mine.merge(value)
            elif mine is not None and value is not None and mine != value:
                raise at_user_line(ValueError("Cannot merge incompatible values of option %s: %r and %r" % (name, mine, value)))
            made._given[name] = mine if value is None else value
        return made

    def _said(self) -> Dict[str, Any]:
        """What has been given; groups of which nothing has are as if nobody had asked for them."""
        return {name: value for name, value in self._given.items() if value is not None and not (isinstance(value, _Hints) and not value._said())}

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self._said() == other._said()

    __hash__ = None  # type: ignore[assignment]


class MapVectorizationOptions(_Hints):
    """Whether functions of elements are made functions of batches; they are not."""

    _names = dict.fromkeys(["enabled", "use_choose_fastest"])


_DEFAULT_OPTIMIZATIONS = ("map_and_batch_fusion", "noop_elimination", "shuffle_and_repeat_fusion")
_OPTIMIZATIONS = (
    "filter_fusion",
    "filter_with_random_uniform_fusion",
    "hoist_random_uniform",
    "map_and_batch_fusion",
    "map_and_filter_fusion",
    "map_parallelization",
    "map_fusion",
    "noop_elimination",
    "parallel_batch",
    "shuffle_and_repeat_fusion",
)


class OptimizationOptions(_Hints):
    """Which rewritings of pipelines are wanted; none are made."""

    _names = {
        **dict.fromkeys(
            [
                "apply_default_optimizations",
                "autotune",
                "autotune_algorithm",
                "autotune_buffers",
                "autotune_cpu_budget",
                "filter_fusion",
                "filter_with_random_uniform_fusion",
                "hoist_random_uniform",
                "map_and_batch_fusion",
                "map_and_filter_fusion",
                "map_fusion",
                "map_parallelization",
                "noop_elimination",
                "parallel_batch",
                "prefetch_to_device",
                "shuffle_and_repeat_fusion",
            ]
        ),
        "map_vectorization": MapVectorizationOptions,
    }


class ThreadingOptions(_Hints):
    """How many threads data sets have; they take what the session has."""

    _names = dict.fromkeys(["max_intra_op_parallelism", "private_threadpool_size"])


class DistributeOptions(_Hints):
    """How data sets are shared among workers."""

    _names = dict.fromkeys(["auto_shard", "auto_shard_policy", "num_devices", "make_stateless"])


class StatsOptions(_Hints):
    """Where latency_stats and bytes_produced_stats of the data set count, and what stands before their tags; other statistics are not kept."""

    _names = dict.fromkeys(["aggregator", "prefix", "counter_prefix", "latency_all_edges"])


class Options(_Hints):
    """What `Dataset.with_options` takes."""

    _names = {
        **dict.fromkeys(
            [
                "experimental_autotune",
                "experimental_deterministic",
                "experimental_numa_aware",
                "experimental_slack",
                "experimental_stateful_whitelist",
                "experimental_external_state_policy",
                "deterministic",
                "autotune",
            ]
        ),
        "experimental_optimization": OptimizationOptions,
        "experimental_threading": ThreadingOptions,
        "experimental_stats": StatsOptions,
        "experimental_distribute": DistributeOptions,
        "threading": ThreadingOptions,
    }

    def _static_optimizations(self) -> List[str]:
        """The names of the rewritings that are wanted: those of 1.15's defaults that are not switched off, and those that are switched on."""
        wanted = self.experimental_optimization
        default = () if wanted.apply_default_optimizations is False else _DEFAULT_OPTIMIZATIONS
        found = [name for name in _OPTIMIZATIONS if (name in default if getattr(wanted, name) is None else getattr(wanted, name))]
        vectorization, stats = wanted.map_vectorization, self.experimental_stats
        said = {
            "map_vectorization": vectorization is not None and vectorization.enabled,
            "make_sloppy": any(allowed is False for allowed in (self.experimental_deterministic, self.deterministic)),
            "latency_all_edges": stats is not None and stats.latency_all_edges,
            "slack": self.experimental_slack,
        }
        return found + [name for name, value in said.items() if value]

    def _static_optimization_configs(self) -> List[str]:
        """What the rewritings are told beside their names, as `name:setting:value`."""
        return ["slack:slack_period:%d" % (self.experimental_distribute.num_devices or 1)] if self.experimental_slack else []
