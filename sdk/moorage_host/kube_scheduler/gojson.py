"""Writes pods and nodes as Go's encoding/json writes them, so that extenders see the real bytes.

Struct fields come in the order of their Go declarations, map keys sorted, empty optional fields
left out, required ones present, and `<`, `>`, `&` and the two line separators escaped.
"""

from typing import Any

import msgspec

_TYPES = {
    "Pod": "metadata:Meta spec:PodSpec status:PodStatus",
    "Node": "metadata:Meta spec:NodeSpec status:NodeStatus",
    "Meta": "name generateName namespace selfLink uid resourceVersion generation creationTimestamp"
    " deletionTimestamp deletionGracePeriodSeconds labels annotations ownerReferences:Owner"
    " finalizers managedFields:Managed",
    "Owner": "apiVersion kind name uid controller blockOwnerDeletion",
    "Managed": "manager operation apiVersion time fieldsType fieldsV1 subresource",
    "PodSpec": "volumes:Volume initContainers:Container containers:Container"
    " ephemeralContainers:Container restartPolicy terminationGracePeriodSeconds"
    " activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName serviceAccount"
    " automountServiceAccountToken nodeName hostNetwork hostPID hostIPC shareProcessNamespace"
    " securityContext:PodSecurity imagePullSecrets hostname subdomain affinity:Affinity"
    " schedulerName tolerations:Toleration hostAliases:HostAlias priorityClassName priority"
    " dnsConfig:DNSConfig readinessGates runtimeClassName enableServiceLinks preemptionPolicy"
    " overhead topologySpreadConstraints:Spread setHostnameAsFQDN os hostUsers schedulingGates"
    " resourceClaims:PodClaim resources:Resources hostnameOverride workloadRef schedulingGroup",
    "Container": "name image command args workingDir ports:Port envFrom:EnvFrom env:Env"
    " resources:Resources resizePolicy:Resize restartPolicy restartPolicyRules volumeMounts:Mount"
    " volumeDevices:Device livenessProbe:Probe readinessProbe:Probe startupProbe:Probe"
    " lifecycle:Lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy"
    " securityContext:Security stdin stdinOnce tty targetContainerName",
    "Port": "name hostPort containerPort protocol hostIP",
    "Env": "name value valueFrom:EnvSource",
    "EnvSource": "fieldRef:FieldRef resourceFieldRef:ResourceRef configMapKeyRef:KeyRef"
    " secretKeyRef:KeyRef fileKeyRef",
    "EnvFrom": "prefix configMapRef:LocalRef secretRef:LocalRef",
    "FieldRef": "apiVersion fieldPath",
    "ResourceRef": "containerName resource divisor",
    "KeyRef": "name key optional",
    "LocalRef": "name optional",
    "Resources": "limits requests claims:ContainerClaim",
    "ContainerClaim": "name request",
    "PodClaim": "name resourceClaimName resourceClaimTemplateName",
    "Resize": "resourceName restartPolicy",
    "Mount": "name readOnly recursiveReadOnly mountPath subPath mountPropagation subPathExpr",
    "Device": "name devicePath",
    "Probe": "exec httpGet:HTTPGet tcpSocket:Socket grpc:GRPC initialDelaySeconds timeoutSeconds"
    " periodSeconds successThreshold failureThreshold terminationGracePeriodSeconds",
    "HTTPGet": "path port host scheme httpHeaders:EnvVar",
    "EnvVar": "name value",
    "Socket": "port host",
    "GRPC": "port service",
    "Lifecycle": "postStart:Handler preStop:Handler stopSignal",
    "Handler": "exec httpGet:HTTPGet tcpSocket:Socket sleep",
    "Security": "capabilities privileged seLinuxOptions:SELinux windowsOptions runAsUser runAsGroup"
    " runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation procMount"
    " seccompProfile:Profile appArmorProfile:Profile",
    "PodSecurity": "seLinuxOptions:SELinux windowsOptions runAsUser runAsGroup runAsNonRoot"
    " supplementalGroups supplementalGroupsPolicy fsGroup sysctls:EnvVar fsGroupChangePolicy"
    " seccompProfile:Profile appArmorProfile:Profile seLinuxChangePolicy",
    "SELinux": "user role type level",
    "Profile": "type localhostProfile",
    "HostAlias": "ip hostnames",
    "DNSConfig": "nameservers searches options:EnvVar",
    "Volume": "name hostPath:HostPath emptyDir:EmptyDir secret:Secret persistentVolumeClaim:Claim"
    " downwardAPI:Downward configMap:ConfigMap csi:CSI projected:Projected ephemeral image:Image",
    "HostPath": "path type",
    "EmptyDir": "medium sizeLimit",
    "Secret": "secretName items:Item defaultMode optional",
    "ConfigMap": "name items:Item defaultMode optional",
    "Item": "key path mode",
    "Claim": "claimName readOnly",
    "Downward": "items:DownwardItem defaultMode",
    "DownwardItem": "path fieldRef:FieldRef resourceFieldRef:ResourceRef mode",
    "CSI": "driver readOnly fsType volumeAttributes nodePublishSecretRef",
    "Projected": "sources:Source defaultMode",
    "Source": "secret:ConfigMap downwardAPI:Downward configMap:ConfigMap serviceAccountToken:Token",
    "Token": "audience expirationSeconds path",
    "Image": "reference pullPolicy",
    "Affinity": "nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity",
    "NodeAffinity": "requiredDuringSchedulingIgnoredDuringExecution:NodeSelector"
    " preferredDuringSchedulingIgnoredDuringExecution:WeightedNode",
    "NodeSelector": "nodeSelectorTerms:NodeTerm",
    "NodeTerm": "matchExpressions:Requirement matchFields:Requirement",
    "Requirement": "key operator values",
    "WeightedNode": "weight preference:NodeTerm",
    "PodAffinity": "requiredDuringSchedulingIgnoredDuringExecution:PodTerm"
    " preferredDuringSchedulingIgnoredDuringExecution:WeightedPod",
    "WeightedPod": "weight podAffinityTerm:PodTerm",
    "PodTerm": "labelSelector:LabelSelector namespaces topologyKey namespaceSelector:LabelSelector"
    " matchLabelKeys mismatchLabelKeys",
    "LabelSelector": "matchLabels matchExpressions:Requirement",
    "Spread": "maxSkew topologyKey whenUnsatisfiable labelSelector:LabelSelector minDomains"
    " nodeAffinityPolicy nodeTaintsPolicy matchLabelKeys",
    "Toleration": "key operator value effect tolerationSeconds",
    "PodStatus": "observedGeneration phase conditions:PodCondition message reason"
    " nominatedNodeName hostIP hostIPs podIP podIPs startTime initContainerStatuses:ContainerStatus"
    " containerStatuses:ContainerStatus qosClass ephemeralContainerStatuses:ContainerStatus resize"
    " resourceClaimStatuses extendedResourceClaimStatus allocatedResources resources:Resources",
    "PodCondition": "type observedGeneration status lastProbeTime lastTransitionTime reason"
    " message",
    "ContainerStatus": "name state:State lastState:State ready restartCount image imageID"
    " containerID started allocatedResources resources:Resources volumeMounts:Mount user"
    " allocatedResourcesStatus stopSignal",
    "State": "waiting:Waiting running terminated:Terminated",
    "Waiting": "reason message",
    "Terminated": "exitCode signal reason message startedAt finishedAt containerID",
    "NodeSpec": "podCIDR podCIDRs providerID unschedulable taints:Taint configSource externalID",
    "Taint": "key value effect timeAdded",
    "NodeStatus": "capacity allocatable phase conditions:NodeCondition addresses:Address"
    " daemonEndpoints:Endpoints nodeInfo:NodeInfo images:ContainerImage volumesInUse"
    " volumesAttached:Attached config runtimeHandlers:Runtime features declaredFeatures",
    "NodeCondition": "type status lastHeartbeatTime lastTransitionTime reason message",
    "Address": "type address",
    "Endpoints": "kubeletEndpoint",
    "NodeInfo": "machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion"
    " kubeletVersion kubeProxyVersion operatingSystem architecture swap",
    "ContainerImage": "names sizeBytes",
    "Attached": "name devicePath",
    "Runtime": "name features",
}
_FIELDS = {
    name: tuple((field, kind) for field, _, kind in (f.partition(":") for f in fields.split()))
    for name, fields in _TYPES.items()
}
# Fields without omitempty: Go writes them even when nobody set them.
_ALWAYS: dict[str, dict[str, Any]] = {
    "Pod": {"metadata": {}, "spec": {}, "status": {}},
    "Node": {"metadata": {}, "spec": {}, "status": {}},
    "PodSpec": {"containers": None},
    "Container": {"name": "", "resources": {}},
    "PodCondition": {"lastProbeTime": None, "lastTransitionTime": None},
    "NodeCondition": {"lastHeartbeatTime": None, "lastTransitionTime": None},
    "NodeStatus": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": {}},
    "NodeInfo": dict.fromkeys(_TYPES["NodeInfo"].split()[:10], ""),
}
_ESCAPES = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


def pod_json(pod: dict[str, Any]) -> bytes:
    """Write a pod as kube-scheduler holds it: without kind, apiVersion and managedFields."""
    metadata = {k: v for k, v in pod.get("metadata", {}).items() if k != "managedFields"}
    return dumps(_ordered({**pod, "metadata": metadata}, "Pod"))


def node_json(node: dict[str, Any]) -> bytes:
    """Write a node as an item of a list: without kind and apiVersion, with managedFields."""
    return dumps(_ordered(node, "Node"))


def dumps(value: Any) -> bytes:
    """Write a value with Go's escapes, keys in the order they have."""
    text = msgspec.json.encode(value)
    for raw, escaped in _ESCAPES:
        # These characters occur only inside strings, so replacing them in the text is safe.
        if raw in text:
            text = text.replace(raw, escaped)
    return text


def _ordered(value: Any, kind: str) -> Any:
    if isinstance(value, list):
        return [_ordered(item, kind) for item in value]
    if not isinstance(value, dict):
        return value
    fields = _FIELDS.get(kind)
    if fields is None:
        return {key: _ordered(value[key], "") for key in sorted(value)}
    return _struct(value, kind, fields)


def _struct(
    value: dict[str, Any], kind: str, fields: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    always = _ALWAYS.get(kind, {})
    result = {}
    for name, child in fields:
        given = value.get(name)
        if given is None or given == "" or given == []:
            if name in always:
                result[name] = _ordered(always[name], child)
        else:
            result[name] = _ordered(given, child)
    top = kind in ("Pod", "Node")
    unknown = () if top else sorted(value.keys() - {name for name, _ in fields})
    return result | {name: _ordered(value[name], "") for name in unknown}
