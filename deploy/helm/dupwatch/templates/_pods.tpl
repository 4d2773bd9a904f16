{{/* pods with the overrides of a part, as JSON. Arguments: root, values. */}}
{{- define "dupwatch.pod" -}}
{{- $pod := deepCopy .root.Values.pods -}}
{{- range $key, $value := .values.pod -}}
{{- $_ := set $pod $key $value -}}
{{- end -}}
{{- toJson $pod -}}
{{- end }}

{{/* Labels and annotations of pods. Arguments: root, component, pod; files: the definitions of files that they read. */}}
{{- define "dupwatch.podMetadata" -}}
{{- $root := .root -}}
labels:
  {{- merge (fromYaml (include "dupwatch.selector" .)) (deepCopy .pod.labels) | toYaml | nindent 2 }}
{{- $annotations := deepCopy .pod.annotations -}}
{{- /* A change of a file is a roll-out. */ -}}
{{- range .files -}}
{{- $_ := set $annotations (printf "checksum/%s" .) (include (printf "dupwatch.%sFile" .) $root | sha256sum) -}}
{{- end -}}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What the specifications of all pods have. Arguments: root, pod; user: the number of the user. */}}
{{- define "dupwatch.podSpec" -}}
{{- $user := .user | default 10001 -}}
serviceAccountName: {{ include "dupwatch.account" .root | quote }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with .pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ $user }}
  runAsGroup: {{ $user }}
  fsGroup: {{ $user }}
  {{- if .user }}
  fsGroupChangePolicy: OnRootMismatch
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* Spread pods over zones and nodes. Arguments: root, component. */}}
{{- define "dupwatch.spread" -}}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "dupwatch.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}

{{- define "dupwatch.hardened" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* A probe. Arguments: page, certificate, period, timeout, failures. */}}
{{- define "dupwatch.probe" -}}
httpGet:
  path: {{ .page }}
  port: http
  {{- if .certificate }}
  scheme: HTTPS
  {{- end }}
periodSeconds: {{ .period }}
timeoutSeconds: {{ .timeout }}
failureThreshold: {{ .failures }}
{{- end }}

{{- define "dupwatch.env" -}}
{{- with .env }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Mounts of a container. Arguments: root, pod; files: config, and names in secrets. */}}
{{- define "dupwatch.mounts" -}}
volumeMounts:
  {{- range .files }}
  {{- if or (eq . "config") (index $.root.Values.secrets .) }}
  - name: {{ . }}
    mountPath: {{ eq . "config" | ternary "/etc/dupwatch" (printf "/run/secrets/%s" .) }}
    readOnly: true
  {{- end }}
  {{- end }}
  - name: tmp
    mountPath: /tmp
  {{- with .pod.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Volumes of pods. Arguments: as of dupwatch.mounts; size: that of /tmp, where the tokenizer caches its dictionary. */}}
{{- define "dupwatch.volumes" -}}
volumes:
  {{- range .files }}
  {{- if eq . "config" }}
  - name: config
    configMap:
      name: {{ include "dupwatch.fullname" $.root }}-config
  {{- else if eq . "hbase-site" }}
  - name: hbase-site
    configMap:
      name: {{ include "dupwatch.fullname" $.root }}-hbase-site
  {{- else if index $.root.Values.secrets . }}
  - name: {{ . }}
    secret:
      secretName: {{ index $.root.Values.secrets . | quote }}
      # Others must not read it, or dupwatch refuses it.
      defaultMode: 0440
  {{- end }}
  {{- end }}
  - name: tmp
    emptyDir:
      sizeLimit: {{ .size | default "256Mi" }}
  {{- with .pod.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The budget of a part. Arguments: root, component, values. */}}
{{- define "dupwatch.disruptionBudget" -}}
{{- if .values.disruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "dupwatch.metadata" (merge (dict "name" (printf "%s-%s" (include "dupwatch.fullname" .root) .component)) .) | nindent 2 }}
spec:
  maxUnavailable: {{ toJson .values.disruptionBudget.maxUnavailable }}
  # While a server is down no pod is ready. They are idle then, so nodes may still be drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "dupwatch.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{/* Service and Ingress of the HTTP service or of the console. Arguments: root, component, values, port. */}}
{{- define "dupwatch.front" -}}
{{- $name := printf "%s-%s" (include "dupwatch.fullname" .root) .component -}}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "dupwatch.metadata" (dict "root" .root "name" $name "component" .component "annotations" .values.service.annotations) | nindent 2 }}
spec:
  {{- if ne .values.service.type "ClusterIP" }}
  type: {{ .values.service.type }}
  {{- end }}
  selector:
    {{- include "dupwatch.selector" . | nindent 4 }}
  ports:
    - name: http
      port: {{ .port }}
      targetPort: http
{{- with .values.ingress }}
{{- if .enabled }}
{{- if not $.values.hosts }}
{{- fail (printf "%s.ingress is enabled, but %s.hosts is empty: name a host" $.component $.component) }}
{{- end }}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "dupwatch.metadata" (dict "root" $.root "name" $name "component" $.component "annotations" .annotations) | nindent 2 }}
spec:
  {{- with .className }}
  ingressClassName: {{ . | quote }}
  {{- end }}
  rules:
    {{- range $.values.hosts }}
    - host: {{ . | quote }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: {{ $name }}
                port:
                  name: http
    {{- end }}
  {{- with .tlsSecret }}
  tls:
    - secretName: {{ . | quote }}
      hosts:
        {{- toYaml $.values.hosts | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
