{{/* What more than one template needs. Arguments of several values are a list: the root, then the name of a process. */}}

{{- define "moorage.labels" -}}
{app.kubernetes.io/name: {{ . }}, app.kubernetes.io/part-of: moorage}
{{- end }}

{{/* The image of all processes but kube-scheduler. */}}
{{- define "moorage.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* kube-scheduler's image, by default of the cluster's own version, without what providers add to it. */}}
{{- define "moorage.schedulerImage" -}}
{{- $version := regexFind "^v[0-9]+\\.[0-9]+\\.[0-9]+" .Capabilities.KubeVersion.Version -}}
{{ .Values.scheduler.image.repository }}:{{ .Values.scheduler.image.tag | default $version }}
{{- end }}

{{/* Metadata of a pod. The checksums restart it when a file changes that it reads at its start only. */}}
{{- define "moorage.podMetadata" -}}
{{- $root := index . 0 }}{{ $name := index . 1 -}}
labels: {{ include "moorage.labels" $name }}
{{- $sums := dict }}
{{- if eq $name "scheduler" }}
{{- $_ := set $sums "checksum/kube-scheduler" (include "moorage.kubeSchedulerConfig" $root | sha256sum) }}
{{- else if has $name (list "filter" "scorer") }}
{{- if $root.Values.plugins }}{{ $_ := set $sums "checksum/plugins" (toYaml $root.Values.plugins | sha256sum) }}{{ end }}
{{- else if and (eq $name "binder") $root.Values.bindPlugins }}
{{- $_ := set $sums "checksum/plugins" (toYaml $root.Values.bindPlugins | sha256sum) }}
{{- end }}
{{- with merge $sums ($root.Values.podAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What the pods of all processes have in common: who they are, where they go, and that they need no rights. */}}
{{- define "moorage.pod" -}}
{{- $root := index . 0 }}{{ $name := index . 1 -}}
serviceAccountName: {{ $name }}
# Never a scheduler that waits for Moorage: Moorage must come up before it can place pods.
schedulerName: {{ include "moorage.ownScheduler" $root }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532  # may read the key
  seccompProfile: {type: RuntimeDefault}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {app.kubernetes.io/name: {{ $name }}}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {app.kubernetes.io/name: {{ $name }}}
{{- range $field := list "nodeSelector" "tolerations" "affinity" }}
{{- with index $root.Values.placement $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* What all containers of Moorage's image have in common; some are commands, without settings and admin port. */}}
{{- define "moorage.container" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $values := index $root.Values $name }}{{ $command := has $name (list "gate" "capacity") -}}
image: {{ include "moorage.image" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
{{- if not $command }}
envFrom:
- configMapRef: {name: settings}
{{- with $values.env }}
env:
  {{- toYaml . | nindent 0 }}
{{- end }}
startupProbe:
  httpGet: {path: /livez, port: admin, scheme: HTTPS}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: admin, scheme: HTTPS}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}
resources:
{{- if $command }}{{/* it asks a question every few seconds */}}
  limits: {memory: 256Mi}
  requests: {cpu: 50m, memory: 96Mi}
{{- else }}
  {{- toYaml $values.resources | nindent 2 }}
{{- end }}
{{- include "moorage.containerSecurity" . }}
{{- end }}

{{- define "moorage.containerSecurity" }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "moorage.readiness" -}}
readinessProbe:
  httpGet: {path: /readyz, port: admin, scheme: HTTPS}
  periodSeconds: 2
  timeoutSeconds: 2
{{- end }}

{{/* The gateway's arguments, in its own pod and beside kube-scheduler. */}}
{{- define "moorage.gatewayArgs" -}}
- --filter=dns:///filter:50051
- --scorer=dns:///scorer:50051
- --binder=dns:///binder:50051
{{- if .Values.shadow.replicas }}
- --shadow-filter=dns:///shadow-filter:50051
- --shadow-scorer=dns:///shadow-scorer:50051
{{- end }}
- --config=/etc/moorage/policy/policy.yaml
{{- if ne .Values.extender.httpTimeout "5s" }}
- --http-timeout={{ .Values.extender.httpTimeout }}
{{- end }}
{{- end }}
