{{/* The settings of dupwatch as JSON: config, and what depends on the cluster. */}}
{{- define "dupwatch.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $fullname := include "dupwatch.fullname" . -}}
{{- if .Values.consumer.enabled -}}
{{- $_ := set $config "http" (merge ($config.http | default dict) (dict "listen" "0.0.0.0:9464")) -}}
{{- end -}}
{{- if .Values.serve.enabled -}}
{{- $names := include "dupwatch.hosts" (dict "root" . "component" "serve") | fromJsonArray -}}
{{- $added := dict "listen" "0.0.0.0:8750" "tokens" "/run/secrets/tokens/tokens.json" "names" $names -}}
{{- $_ := set $config "service" (merge ($config.service | default dict) $added) -}}
{{- end -}}
{{- if .Values.console.enabled -}}
{{- $names := include "dupwatch.hosts" (dict "root" . "component" "console") | fromJsonArray -}}
{{- $added := dict "listen" "0.0.0.0:8760" "names" $names -}}
{{- if .Values.postgresql.enabled -}}
{{- $address := printf "%s-postgresql.%s.svc:5432" $fullname .Release.Namespace -}}
{{- $_ := set $added "database" (printf "postgresql://dupwatch@%s/console" $address) -}}
{{- $_ := set $added "password_file" "/run/secrets/database/password" -}}
{{- end -}}
{{- $_ := set $config "console" (merge ($config.console | default dict) $added) -}}
{{- end -}}
{{- toJson $config -}}
{{- end }}

{{/* All names of a Service as a JSON array. Arguments: root, component. */}}
{{- define "dupwatch.hosts" -}}
{{- $service := printf "%s-%s" (include "dupwatch.fullname" .root) .component -}}
{{- $inside := printf "%s.%s" $service .root.Release.Namespace -}}
{{- $hosts := index .root.Values .component "hosts" -}}
{{- concat $hosts (list $service $inside (printf "%s.svc" $inside) (printf "%s.svc.cluster.local" $inside)) | toJson -}}
{{- end }}

{{/* TOML of a table. A string, number, boolean or array of these is the same in JSON. Arguments: path, table. */}}
{{- define "dupwatch.toml" -}}
{{- $path := .path -}}
{{- range $key, $value := .table }}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value)) }}
{{ include "dupwatch.key" $key }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{- range $key, $value := .table }}
{{- if kindIs "map" $value }}
{{- $inner := append $path (include "dupwatch.key" $key) }}

[{{ join "." $inner }}]
{{- include "dupwatch.toml" (dict "path" $inner "table" $value) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "dupwatch.key" -}}
{{ if regexMatch "^[A-Za-z0-9_-]+$" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{- define "dupwatch.configFile" -}}
{{ include "dupwatch.toml" (dict "path" list "table" (include "dupwatch.config" . | fromJson)) | trim }}
{{- end }}

{{- define "dupwatch.siteFile" -}}
<?xml version="1.0"?>
<configuration>
{{- range $name, $value := .Values.hbaseSite }}
  <property>
    <name>{{ html $name }}</name>
    <value>{{ if kindIs "string" $value }}{{ html $value }}{{ else }}{{ toJson $value }}{{ end }}</value>
  </property>
{{- end }}
</configuration>
{{- end }}

{{/* The number of the port in an address. Arguments: listen, setting. */}}
{{- define "dupwatch.port" -}}
{{- $port := regexFind ":[0-9]+$" (toString .listen) | trimPrefix ":" -}}
{{- if not $port -}}
{{- fail (printf "config.%s is %q: write an address with a port, such as 0.0.0.0:8000" .setting .listen) -}}
{{- end -}}
{{- if regexMatch "^(127\\.|localhost:|\\[::1\\])" .listen -}}
{{- fail (printf "config.%s is %q, where probes cannot reach it: write 0.0.0.0:%s" .setting .listen $port) -}}
{{- end -}}
{{- int $port -}}
{{- end }}

{{/* Refuse a part that would be killed while it ends. Arguments: root, part, setting, needed_s. */}}
{{- define "dupwatch.checkGrace" -}}
{{- $part := index .root.Values .part -}}
{{- if and $part.enabled (lt (float64 $part.terminationGracePeriodSeconds) (float64 .needed_s)) -}}
{{- fail (printf "%s.terminationGracePeriodSeconds %v is too short: with config.%s it may need %v" .part $part.terminationGracePeriodSeconds .setting .needed_s) -}}
{{- end -}}
{{- end }}

{{/* Refuse values with which the pods could not work. */}}
{{- define "dupwatch.check" -}}
{{- $values := .Values -}}
{{- $config := include "dupwatch.config" . | fromJson -}}
{{- range $section, $example := dict "source" "kafka://HOST:PORT/TOPIC" "sink" "kafka://HOST:PORT/PREFIX" "store" "hbase://HOST:PORT/NAMESPACE" -}}
{{- $url := dig $section "url" "" $config -}}
{{- if not (hasPrefix (printf "%s://" (splitList ":" $example | first)) $url) -}}
{{- fail (printf "config.%s.url is %q: write %s" $section $url $example) -}}
{{- end -}}
{{- end -}}
{{- if and $values.consumer.enabled (not (or (dig "http" "open" false $config) (dig "http" "user" "" $config))) -}}
{{- fail "config.http has neither user nor open: name a user and a password_file, or set open, if a network policy keeps others out" -}}
{{- end -}}
{{- if and $values.console.enabled (not (dig "console" "database" "" $config)) -}}
{{- fail "config.console.database is missing: name a PostgreSQL, or set postgresql.enabled" -}}
{{- end -}}
{{- if and $values.postgresql.enabled (dig "console" "database" "" $values.config) -}}
{{- fail "config.console.database is set, and postgresql is enabled: leave one of them out" -}}
{{- end -}}
{{- if and $values.postgresql.enabled (not $values.secrets.database) -}}
{{- fail "secrets.database is empty: postgresql needs a Secret with a password" -}}
{{- end -}}
{{- if and $values.tables.enabled (not (index $values.hbaseSite "hbase.zookeeper.quorum")) -}}
{{- fail "hbaseSite has no hbase.zookeeper.quorum: name the servers of ZooKeeper, or set tables.enabled to false" -}}
{{- end -}}
{{- range regexFindAll "/run/secrets/[a-z]+" (include "dupwatch.configFile" .) -1 -}}
{{- $name := trimPrefix "/run/secrets/" . -}}
{{- if and (hasKey $values.secrets $name) (not (index $values.secrets $name)) -}}
{{- fail (printf "config names %s, but secrets.%s is empty: name a Secret" . $name) -}}
{{- end -}}
{{- end -}}
{{- include "dupwatch.checkGrace" (dict "root" . "part" "consumer" "setting" "kafka.grace_s" "needed_s" (dig "kafka" "grace_s" 60 $config)) -}}
{{- range $part, $section := dict "serve" "service" "console" "console" -}}
{{- $needed_s := addf 25 (dig $section "drain_s" 20 $config) -}}
{{- include "dupwatch.checkGrace" (dict "root" $ "part" $part "setting" (printf "%s.drain_s" $section) "needed_s" $needed_s) -}}
{{- end -}}
{{- if and $values.monitoring.enabled $values.consumer.enabled (dig "http" "user" "" $config) (not $values.secrets.http) -}}
{{- fail "secrets.http is empty: name a Secret with the user and the password for Prometheus, or set monitoring.enabled to false" -}}
{{- end -}}
{{- if and $values.monitoring.enabled $values.serve.enabled (not $values.secrets.scrape) -}}
{{- fail "secrets.scrape is empty: name a Secret with a token for Prometheus, or set monitoring.enabled to false" -}}
{{- end -}}
{{- end }}
