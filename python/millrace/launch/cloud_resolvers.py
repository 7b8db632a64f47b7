# SPDX-License-Identifier: Apache-2.0
"""Resolvers that ask a cloud where the tasks of a cluster are: instances of a group, and the hosts of TPUs. Finding these hosts is all that is done
with them: there are no kernels for TPUs."""

from __future__ import annotations

import os
import re
import urllib.request
from typing import Any, Dict, List, NamedTuple, Optional

from millrace.framework.errors import DeadlineExceededError, at_user_line
from millrace.launch.resolvers import ClusterResolver, devices_of, format_master_url
from millrace.train.cluster import ClusterSpec
from millrace.train.server import Server

_METADATA = "http://metadata.google.internal"
_ENDPOINTS_OF_GKE = "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS"
_TRIES = 120


def is_running_in_gce() -> bool:
    """Whether this machine is one of Google's cloud: whether its metadata server answers."""
    try:
        request = urllib.request.Request(_METADATA, headers={"Metadata-Flavor": "Google"})
        return bool(urllib.request.urlopen(request, timeout=3).info().get("Metadata-Flavor") == "Google")
    except OSError:
        return False


def _client(api: str, version: str, credentials: Any, discovery_url: Optional[str] = None) -> Any:
    """Google's client of a service. ImportError where its packages are absent."""
    try:
        from googleapiclient import discovery  # type: ignore[import-not-found]

        if credentials == "default":
            from oauth2client.client import GoogleCredentials  # type: ignore[import-not-found]

            credentials = GoogleCredentials.get_application_default()
    except ImportError:
        wanted = "the packages google-api-python-client and oauth2client must be installed to ask Google's cloud for a cluster, or give `service`"
        raise at_user_line(ImportError("%s: %s." % (api, wanted))) from None
    url = {"discoveryServiceUrl": discovery_url} if discovery_url else {}
    return discovery.build(api, version, credentials=credentials, **url)


class GCEClusterResolver(ClusterResolver):
    """The instances of a group on Google's Compute Engine, as the tasks of one job."""

    def __init__(
        self,
        project: str,
        zone: str,
        instance_group: str,
        port: int,
        task_type: str = "worker",
        task_id: int = 0,
        rpc_layer: str = "grpc",
        credentials: Any = "default",
        service: Any = None,
    ) -> None:
        self._project, self._zone, self._group, self._port = project, zone, instance_group, port
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer
        self._service = _client("compute", "v1", credentials) if service is None else service

    def _instances(self) -> List[str]:
        """The names of those that run."""
        found: List[str] = []
        groups = self._service.instanceGroups()
        request = groups.listInstances(project=self._project, zone=self._zone, instanceGroup=self._group, body={"instanceState": "RUNNING"}, orderBy="name")
        while request is not None:
            response = request.execute()
            found += [item["instance"].split("/")[-1] for item in response.get("items", [])]
            request = groups.listInstances_next(previous_request=request, previous_response=response)
        return found

    def cluster_spec(self) -> ClusterSpec:
        """One job, with the inner addresses of the instances in their order."""
        addresses = []
        for name in self._instances():
            instance = self._service.instances().get(project=self._project, zone=self._zone, instance=name).execute()
            addresses.append("%s:%s" % (instance["networkInterfaces"][0]["networkIP"], self._port))
        return ClusterSpec({str(self.task_type): sorted(addresses)})


class GceClusterResolver(GCEClusterResolver):
    """The same by the name that it had in tf.contrib, where job_name was what task_type is since 1.12."""

    def __init__(
        self,
        project: str,
        zone: str,
        instance_group: str,
        port: int,
        task_type: str = "worker",
        task_id: Any = 0,
        rpc_layer: Any = "grpc",
        credentials: Any = "default",
        service: Any = None,
        job_name: Optional[str] = None,
    ) -> None:
        if not isinstance(task_id, int):  # in these places were the credentials and the service then
            task_id, rpc_layer, credentials, service = 0, "grpc", task_id, service if isinstance(rpc_layer, str) else rpc_layer
        super().__init__(project, zone, instance_group, port, job_name or task_type, task_id, rpc_layer, credentials, service)


class DeviceDetails(NamedTuple):
    """TPU cores: by the number of their host, and how many there are in all."""

    device_map: Dict[str, List[str]]
    total_cores: int


class TPUClusterResolver(ClusterResolver):
    """Where the hosts of a Cloud TPU are: an address is what it is, a name is asked of the cloud; "" and "local" are this process."""

    def __init__(
        self,
        tpu: Any = None,
        zone: Optional[str] = None,
        project: Optional[str] = None,
        job_name: str = "worker",
        coordinator_name: Optional[str] = None,
        coordinator_address: Optional[str] = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: Optional[str] = None,
    ) -> None:
        name = self._named(tpu)
        if name == "" and is_running_in_gce():
            raise at_user_line(RuntimeError("a TPU must be named where a program runs in the Google Cloud"))
        self._in_google = name in ("", "local") or name.startswith(("/bns", "localhost:"))
        self.environment = "google" if self._in_google else ""
        self.rpc_layer = None if self._in_google else "grpc"
        if self._in_google:
            name = re.sub(r"^(/.*):\d+$", r"\1", name)
        self._tpu = (name[len("grpc://") :] if name.startswith("grpc://") else name).encode()
        self._is_address = self._in_google or name.startswith(("grpc://", "/"))
        self.task_type, self.task_id, self._job_name = job_name, 0, job_name
        self._zone, self._project, self._service = zone, project, service
        if self._should_resolve():
            self._find_service(credentials, discovery_url)
        self._coordinator_name, self._coordinator_address = coordinator_name, coordinator_address
        if coordinator_name and not coordinator_address and self._should_resolve():
            self._start_local_server()

    @classmethod
    def _named(cls, tpu: Any) -> str:
        """The name that was given, as text, or that the environment has."""
        if isinstance(tpu, (list, tuple)):
            if not tpu:
                raise at_user_line(ValueError("At least one TPU must be specified."))
            if len(tpu) > 1:
                raise at_user_line(NotImplementedError("Multiple TPUs are not supported: give one"))
            tpu = tpu[0]
        if tpu is None:
            tpu = cls._gke_endpoints() if cls._in_gke() else cls._env_var_fallback()
        if tpu is None:
            raise at_user_line(ValueError("Please provide a TPU Name to connect to."))
        return tpu.decode() if isinstance(tpu, bytes) else str(tpu)

    @staticmethod
    def _in_gke() -> bool:
        """Whether Kubernetes has given this process TPUs."""
        return _ENDPOINTS_OF_GKE in os.environ

    @staticmethod
    def _gke_endpoints() -> str:
        """Their addresses, with commas."""
        return os.environ[_ENDPOINTS_OF_GKE]

    @staticmethod
    def _env_var_fallback() -> Optional[str]:
        """The name that the environment has for programs that give none."""
        return os.environ.get("TPU_NAME")

    @staticmethod
    def _environment_discovery_url() -> Optional[str]:
        """Where the service describes itself, where the environment says that."""
        return os.environ.get("TPU_API_DISCOVERY_URL")

    def _find_service(self, credentials: Any, discovery_url: Optional[str]) -> None:
        """The service, and the project and zone that names are looked for in."""
        if self._service is None:
            self._service = _client("tpu", "v1", credentials, self._environment_discovery_url() or discovery_url)
        if not self._project:
            self._project = _text(self._request_compute_metadata("project/project-id"))
        if not self._zone:
            self._zone = _text(self._request_compute_metadata("instance/zone")).split("/")[-1]

    def _request_compute_metadata(self, path: str) -> Any:
        """What the metadata server knows of this machine, as bytes."""
        request = urllib.request.Request("%s/computeMetadata/v1/%s" % (_METADATA, path), headers={"Metadata-Flavor": "Google"})
        return urllib.request.urlopen(request).read()

    def _should_resolve(self) -> bool:
        """Whether the cloud must be asked, since what was given is no address."""
        return not self._is_address

    def _start_local_server(self) -> None:
        """A server in this process, which is the coordinator, at an address that others reach."""
        self._server = Server({"local": ["0.0.0.0:0"]})
        self._coordinator_port = self._server.target.rsplit(":", 1)[1]
        self._coordinator_address = "%s:%s" % (_text(self._request_compute_metadata("instance/network-interfaces/0/ip")), self._coordinator_port)

    def _fetch_cloud_tpu_metadata(self) -> Any:
        """What the cloud knows of the TPU. ValueError where it knows none of this name."""
        name = "projects/%s/locations/%s/nodes/%s" % (self._project, self._zone, _text(self._tpu))
        try:
            return self._service.projects().locations().nodes().get(name=name).execute()
        except Exception as error:
            raise at_user_line(ValueError("Could not lookup TPU metadata from name '%s': %s" % (_text(self._tpu), error))) from error

    def _hosts(self) -> List[str]:
        """Addresses of the TPU's hosts."""
        if not self._should_resolve():
            return [a[len("grpc://") :] if a.startswith("grpc://") else a for a in _text(self._tpu).split(",")]
        told = self._fetch_cloud_tpu_metadata()
        if told.get("state", "READY") != "READY":
            raise at_user_line(RuntimeError('TPU "%s" is not yet ready; state: "%s"' % (_text(self._tpu), told["state"])))
        return ["%s:%s" % (host["ipAddress"], host["port"]) for host in told.get("networkEndpoints") or [told]]

    def cluster_spec(self) -> Any:
        """A job of the TPU's hosts, and one of the coordinator if it has a name; None where there is no cluster."""
        if self._in_google:
            return None
        jobs = {self._job_name: self._hosts()}
        if self._coordinator_address:
            jobs[self._coordinator_name or "coordinator"] = [self._coordinator_address]
        return ClusterSpec(jobs)

    def master(self, task_type: Optional[str] = None, task_id: Optional[int] = None, rpc_layer: Optional[str] = None) -> str:
        """The target of sessions: the task's, the first one's unless given."""
        spec = self.cluster_spec()
        if spec is None:
            return format_master_url(_text(self._tpu), rpc_layer or self.rpc_layer) if self._tpu != b"local" else ""
        kind = self.task_type if task_type is None else task_type
        number = self.task_id if task_id is None else task_id
        return format_master_url(spec.task_address(str(kind), int(number or 0)), rpc_layer or self.rpc_layer)

    def get_master(self) -> str:
        """The target of sessions."""
        return self.master()

    def get_job_name(self) -> Optional[str]:
        """The job of the TPU's hosts, where there is a cluster."""
        return None if self._in_google else self._job_name

    @staticmethod
    def _get_device_dict_and_cores(devices: Any) -> DeviceDetails:
        """The TPU cores among devices."""
        found: Dict[str, List[str]] = {}
        for d in devices:
            core = re.match(r".*task:(\d+)/.*device:TPU:(\d+)$", d.name)
            if core:
                found.setdefault(core.group(1), []).append(core.group(2))
        return DeviceDetails(found, sum(map(len, found.values())))

    @staticmethod
    def _verify_and_return_same_core_count(device_dict: Any) -> int:
        """How many cores each host has. RuntimeError where they differ."""
        counts = {len(cores) for cores in device_dict.values()}
        if len(counts) != 1:
            raise at_user_line(RuntimeError("TPU cores on each device is not the same: %s" % (device_dict,)))
        return counts.pop()

    def num_accelerators(self, task_type: Optional[str] = None, task_id: Optional[int] = None, config_proto: Any = None) -> Dict[str, int]:
        """{"TPU": the cores of each host}. RuntimeError where the hosts do not answer."""
        for _ in range(_TRIES):
            try:
                devices = devices_of(self.master(task_type, task_id), config_proto)
                break
            except DeadlineExceededError:
                continue
        else:
            raise at_user_line(RuntimeError("Failed to connect to the TPU %r after %d tries." % (_text(self._tpu), _TRIES)))
        details = self._get_device_dict_and_cores(devices)
        return {"TPU": self._verify_and_return_same_core_count(details.device_map) if details.total_cores else 0}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
