{{/* kube-scheduler's configuration. */}}

{{- define "moorage.kubeSchedulerConfig" -}}
# Makes an unmodified kube-scheduler ask Moorage. Changes need a restart of kube-scheduler.
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration

# ClusterRole system:kube-scheduler knows only the lease "kube-scheduler", which the cluster's own scheduler holds:
# a second scheduler needs one of its own, and a Role for it, or it would wait for ever.
leaderElection:
  leaderElect: true
  resourceName: moorage-scheduler
  resourceNamespace: {{ .Release.Namespace }}

# The extender is asked after sampling: with less than 100, a node that it would accept might not be in the sample.
# With thousands of nodes this is what costs most; see docs/deploy.md.
percentageOfNodesToScore: {{ .Values.scheduler.percentageOfNodesToScore }}

profiles:  # what pods write into spec.schedulerName
{{- range include "moorage.schedulerNames" . | fromJsonArray }}
- schedulerName: {{ . }}
{{- end }}

{{ include "moorage.extenders" . }}
{{- end }}
