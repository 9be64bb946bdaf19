/** The metrics of exchanges once more, under the names of OpenTelemetry's conventions for models: dashboards look for these. */
import type { ExchangeMetrics } from "./exchange-metrics";
import { type Metric, pointsOf } from "./metrics";
import { attributes as at, operationName, providerName } from "./names";
import type { Distribution, Point } from "./series";

interface Named {
  name: string;
  help: string;
}

const seconds: Named[] = [
  { name: "gen_ai.client.inference.duration", help: "Duration of an exchange." },
  { name: "gen_ai.client.operation.duration", help: "The older name of gen_ai.client.inference.duration." },
];

const firstChunk: Named[] = [
  { name: "gen_ai.client.inference.time_to_first_chunk", help: "From the request to the first byte of its answer." },
  { name: "gen_ai.server.time_to_first_token", help: "The older name of gen_ai.client.inference.time_to_first_chunk." },
];

const usage: Readonly<Record<string, Named>> = {
  input: { name: "gen_ai.client.inference.usage.input_tokens", help: "Input tokens, with cached ones." },
  output: { name: "gen_ai.client.inference.usage.output_tokens", help: "Output tokens, with those for reasoning." },
  cached: { name: "gen_ai.client.inference.usage.cache_read.input_tokens", help: "Input tokens that were cached." },
  cache_write: {
    name: "gen_ai.client.inference.usage.cache_write.input_tokens",
    help: "Input tokens written to the cache.",
  },
  reasoning: { name: "gen_ai.client.inference.usage.reasoning.output_tokens", help: "Output tokens for reasoning." },
};

export function genaiMetrics({
  seconds: duration,
  firstByteSeconds,
  tokens,
  requestTokens,
}: ExchangeMetrics): Metric[] {
  const perRequest = pointsOf(requestTokens);
  const histogram = (named: Named, unit: string, bounds: readonly number[], points: Point<Distribution>[]): Metric => ({
    ...named,
    unit,
    kind: "histogram",
    bounds,
    points: points.filter(isOfModel).map(renamed),
  });
  const ofKind = <Value>(points: Point<Value>[], kind: string) => points.filter(({ labels }) => labels.kind === kind);
  return [
    ...seconds.map((named) => histogram(named, "s", duration.bounds, pointsOf(duration))),
    ...firstChunk.map((named) => histogram(named, "s", firstByteSeconds.bounds, pointsOf(firstByteSeconds))),
    ...(["input", "output"] as const).map((kind) => {
      const named = {
        name: `gen_ai.client.inference.operation.${kind}_tokens`,
        help: `The ${kind} tokens of an exchange.`,
      };
      return histogram(named, "{token}", requestTokens.bounds, ofKind(perRequest, kind));
    }),
    histogram(
      { name: "gen_ai.client.token.usage", help: "The older form of gen_ai.client.inference.operation." },
      "{token}",
      requestTokens.bounds,
      perRequest.map((point) => ({ ...point, labels: { ...point.labels, [at.tokenType]: point.labels.kind! } })),
    ),
    ...Object.entries(usage).map(
      ([kind, named]): Metric => ({
        ...named,
        unit: "{token}",
        kind: "counter",
        points: ofKind(pointsOf(tokens), kind)
          .filter(isOfModel)
          .map(renamed)
          .map(({ labels, value }) => ({ labels: { ...labels, [at.tokenModality]: "unknown" }, value })),
      }),
    ),
  ];
}

/** An exchange that reached no upstream is no operation of a model. */
const isOfModel = ({ labels }: Point<unknown>): boolean => labels.upstream !== "none";

function renamed<Value>({ labels, value }: Point<Value>): Point<Value> {
  const { dialect = "", model = "", upstream = "", [at.tokenType]: tokenType } = labels;
  return {
    labels: {
      [at.operation]: operationName(dialect),
      [at.provider]: providerName(upstream),
      [at.requestModel]: model,
      ...(tokenType === undefined ? {} : { [at.tokenType]: tokenType }),
    },
    value,
  };
}
