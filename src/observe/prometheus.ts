/**
 * The metrics as Prometheus reads them: https://prometheus.io/docs/instrumenting/exposition_formats. Loaded with the first
 * request for them.
 */
import { ValueType } from "@opentelemetry/api";
import { PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { Metric } from "./metrics";
import { metricData, scopeOf } from "./otel-data";

export const prometheusType = "text/plain; version=0.0.4; charset=utf-8";

// Without timestamps, and without a label that would name this program at each value.
const serializer = new PrometheusSerializer(undefined, false, undefined, true, true);

export function prometheusText(metrics: readonly Metric[], version: string, now: number): string {
  return serializer.serialize({
    resource: resourceFromAttributes({}),
    scopeMetrics: [
      { scope: scopeOf(version), metrics: metrics.map((metric) => metricData(metric, descriptorOf, now)) },
    ],
  });
}

/** The unit is part of the name. */
const descriptorOf = ({ name, help }: Metric) => ({ name, description: help, unit: "", valueType: ValueType.DOUBLE });
