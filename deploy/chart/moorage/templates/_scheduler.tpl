{{/* kube-scheduler's configuration. */}}

{{- define "moorage.kubeSchedulerConfig" -}}
# Makes an unmodified kube-scheduler ask Moorage. Changes need a restart of kube-scheduler.
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration

{{ if eq .Values.layout "control-plane" -}}
# With --config kube-scheduler takes no notice of --kubeconfig and of most other flags.
clientConnection:
  kubeconfig: {{ .Values.controlPlane.kubeconfig }}
leaderElection:
  leaderElect: true
{{- else -}}
# ClusterRole system:kube-scheduler knows only the lease "kube-scheduler", which the cluster's own scheduler holds:
# a second scheduler needs one of its own, and a Role for it, or it would wait forever.
leaderElection:
  leaderElect: true
  resourceName: moorage-scheduler
  resourceNamespace: {{ .Release.Namespace }}
{{- end }}

# The extender is asked after sampling: with less than 100, a node that it would accept might not be in the sample.
# With thousands of nodes this is what costs most; see docs/reference/installation.md.
percentageOfNodesToScore: {{ .Values.scheduler.percentageOfNodesToScore }}

profiles:  # what pods write into spec.schedulerName
{{- range include "moorage.schedulerNames" . | fromJsonArray }}
- schedulerName: {{ . }}
{{- end }}

{{ include "moorage.extenders" . }}
{{- end }}

{{/* A kube-scheduler without extender, for Moorage's own pods where everything else asks Moorage. */}}
{{- define "moorage.plainSchedulerConfig" -}}
# Places Moorage's own pods while the gateway is down: it asks nobody.
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: {{ .Values.controlPlane.kubeconfig }}
leaderElection:
  leaderElect: true
  resourceName: plain-scheduler
  resourceNamespace: {{ .Release.Namespace }}
profiles:
- schedulerName: plain-scheduler
{{- end }}

{{/* Who places Moorage's own pods: never a kube-scheduler that may wait for Moorage. */}}
{{- define "moorage.ownScheduler" -}}
{{- $plain := and (eq .Values.layout "control-plane") (eq .Values.controlPlane.ownPods "plain-scheduler") -}}
{{ $plain | ternary "plain-scheduler" "default-scheduler" }}
{{- end }}
