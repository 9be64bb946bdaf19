/** The metrics in OpenTelemetry's own types, for its serializers. */
import type { HrTime } from "@opentelemetry/api";
import { AggregationTemporality, DataPointType, type MetricData } from "@opentelemetry/sdk-metrics";
import { type Metric, startedAtMs } from "./metrics";
import type { Point } from "./series";

/** `InstrumentationScope` of everything that dragoman emits. */
export const scopeOf = (version: string) => ({ name: "dragoman", version });

/** @param descriptorOf The name, unit and description that the serializer is to write. */
export function metricData(
  metric: Metric,
  descriptorOf: (metric: Metric) => MetricData["descriptor"],
  now: number,
): MetricData {
  const startTime = hrTimeOf(startedAtMs);
  const endTime = hrTimeOf(now);
  const at = <Value>({ labels, value }: Point<Value>) => ({ startTime, endTime, attributes: labels, value });
  const common = { descriptor: descriptorOf(metric), aggregationTemporality: AggregationTemporality.CUMULATIVE };
  if (metric.kind === "histogram") {
    const { bounds } = metric;
    const dataPoints = metric.points.map(({ labels, value: { counts, count, sum } }) =>
      at({ labels, value: { buckets: { boundaries: [...bounds], counts: [...counts] }, count, sum } }),
    );
    return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = metric.points.map(at);
  if (metric.kind === "gauge") return { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
  return { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
}

const hrTimeOf = (ms: number): HrTime => [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)];
