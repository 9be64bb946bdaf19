/** The metrics as Prometheus reads them: https://prometheus.io/docs/instrumenting/exposition_formats */
import type { Metric } from "./metrics";
import type { Distribution } from "./series";

export const prometheusType = "text/plain; version=0.0.4; charset=utf-8";

/** All metrics, also those that have no value now. A counter's name must end in `_total`. */
export function prometheusText(metrics: readonly Metric[]): string {
  const lines: string[] = [];
  for (const metric of metrics) {
    const { name, kind, help } = metric;
    lines.push(`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${kind}`);
    if (metric.kind === "histogram")
      for (const { labels, value } of metric.points) addHistogram(lines, name, labels, metric.bounds, value);
    else for (const { labels, value } of metric.points) lines.push(sample(name, labels, value));
  }
  return `${lines.join("\n")}\n`;
}

type Labels = Readonly<Record<string, string>>;

/** Each bucket counts the values of those before it, too. */
function addHistogram(
  lines: string[],
  name: string,
  labels: Labels,
  bounds: readonly number[],
  { counts, count, sum }: Distribution,
): void {
  let total = 0;
  for (const [at, bound] of bounds.entries()) {
    total += counts[at]!;
    lines.push(sample(`${name}_bucket`, { ...labels, le: numberText(bound) }, total));
  }
  lines.push(sample(`${name}_bucket`, { ...labels, le: "+Inf" }, count));
  lines.push(sample(`${name}_sum`, labels, sum), sample(`${name}_count`, labels, count));
}

function sample(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`);
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${numberText(value)}`;
}

const escaped = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");

const numberText = (value: number): string => String(value).replace("Infinity", "Inf").replace(/^Inf/, "+Inf");
