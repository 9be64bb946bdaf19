/** Reads Prometheus' text format, strictly: https://prometheus.io/docs/instrumenting/exposition_formats/ */

interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const labelPair = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;

/** @throws Error that shows the line, where one is neither a comment nor a sample. */
export function readSamples(text: string): Sample[] {
  if (!text.endsWith("\n")) throw new Error("The last line does not end.");
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name, braced = "", value] =
        /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN|\+Inf)$/.exec(line) ?? [];
      if (name === undefined) throw new Error(`No sample: ${line}`);
      return { name, labels: readLabels(braced, line), value: Number(value!.replace("Inf", "Infinity")) };
    });
}

function readLabels(braced: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  labelPair.lastIndex = 0;
  for (let end = 0; end < braced.length; end = labelPair.lastIndex) {
    const [, name, value] = labelPair.exec(braced) ?? [];
    if (name === undefined) throw new Error(`No label: ${line}`);
    labels[name] = JSON.parse(`"${value}"`);
  }
  return labels;
}

/** The sum of the samples of a name that have these labels; undefined if there is none. */
export function valueIn(samples: readonly Sample[], name: string, labels: Record<string, string> = {}) {
  const found = samples.filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
}
