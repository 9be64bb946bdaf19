/** What is counted of each exchange when it ends, for `/metrics` and OpenTelemetry. Always on: it costs a few look-ups. */
import { beginningOf } from "../beginning";
import { BoundedMap } from "../bounded-map";
import type { Entry } from "../history/entry";
import { openCounter, openHistogram } from "./series";

/** One try of an exchange to reach an upstream. */
export interface CountedAttempt {
  status?: number;
  error?: string;
}

export interface ExchangeMetrics extends ReturnType<typeof openFamilies> {
  /** To be called once for each exchange, with its row. Never throws. */
  count(row: Entry, attempts: readonly CountedAttempt[]): void;
}

/** Seconds; as the OpenTelemetry conventions recommend for calls of models, and two more for long answers. */
const secondBounds = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68,
];
/** Tokens of one exchange; as the conventions recommend, up to what a prompt can have. */
const tokenBounds = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304];

const openFamilies = () => ({
  requests: openCounter(["dialect", "model", "account", "status_class", "initiator"]),
  seconds: openHistogram(["dialect", "model", "upstream"], secondBounds),
  firstByteSeconds: openHistogram(["dialect", "model", "upstream"], secondBounds),
  requestTokens: openHistogram(["kind", "dialect", "model", "upstream"], tokenBounds),
  tokens: openCounter(["kind", "dialect", "model", "upstream"]),
  credits: openCounter(["account", "model", "key"]),
  premiumUnits: openCounter(["account", "model"]),
  upstreamErrors: openCounter(["code"]),
});

/** The value of a label that does not apply. */
const none = "none";
/** Stands for models that nobody has listed and none has answered for: a client makes up their names. */
const unlisted = "other";
/** Characters. */
const longestLabel = 100;
/** How many models of providers are known because they have served. */
const mostServed = 1_000;

/** @param isListed Whether a provider's list or the config names the model. */
export function openExchangeMetrics(isListed: (provider: string, model: string) => boolean): ExchangeMetrics {
  const families = openFamilies();
  const served = new BoundedMap<string, true>(mostServed);

  function labelOf({ upstream_model: model, http_status: status }: Entry, upstream: string): string {
    if (model === null) return none;
    const name = `${upstream} ${model}`;
    if (status < 300 && !served.has(name)) served.set(name, true);
    const isKnown = upstream === "copilot" || served.has(name) || isListed(upstream, model);
    return isKnown ? beginningOf(model, longestLabel) : unlisted;
  }

  return {
    ...families,
    count(row, attempts) {
      const { client_dialect: dialect } = row;
      const upstream = upstreamOf(row.upstream_endpoint);
      const model = labelOf(row, upstream);
      const account = row.account_key ?? none;
      families.requests.add([dialect, model, account, classOf(row), row.initiator ?? none], 1);
      families.seconds.observe([dialect, model, upstream], row.duration_ms / 1000);
      if (row.first_byte_ms !== null)
        families.firstByteSeconds.observe([dialect, model, upstream], row.first_byte_ms / 1000);
      countTokens(row, model, upstream);
      if (row.nano_credits) families.credits.add([account, model, row.key_name ?? none], row.nano_credits / 1e9);
      if (row.premium_units) families.premiumUnits.add([account, model], row.premium_units);
      for (const code of errorCodes(row, attempts)) families.upstreamErrors.add([code], 1);
    },
  };

  function countTokens(row: Entry, model: string, upstream: string): void {
    const kinds = [
      // What was estimated is not the upstream's number.
      ["input", row.tokens_estimated ? null : row.input_tokens],
      ["output", row.tokens_estimated ? null : row.output_tokens],
      ["cached", row.cached_tokens],
      ["cache_write", row.cache_write_tokens],
      ["reasoning", row.reasoning_tokens],
    ] as const;
    for (const [kind, count] of kinds) {
      if (count === null) continue;
      families.tokens.add([kind, row.client_dialect, model, upstream], count);
      if (kind === "input" || kind === "output")
        families.requestTokens.observe([kind, row.client_dialect, model, upstream], count);
    }
  }
}

/** The failures of the upstream in this exchange: statuses, and the words that the history has for errors. */
function errorCodes(row: Entry, attempts: readonly CountedAttempt[]): string[] {
  const codes = attempts.flatMap(({ status = 0, error }) => error ?? (status >= 400 ? String(status) : []));
  if (classOf(row) === "cut" && row.error_type !== null) codes.push(row.error_type);
  return codes.filter((code) => code !== "client_closed");
}

/** `cut`: the answer began with 200 and ended with an error. */
const classOf = ({ http_status: status, error_type: error }: Entry): string =>
  status < 400 && error !== null ? "cut" : `${Math.floor(status / 100)}xx`;

/** `copilot`, or the name of a provider or of a search engine. @param endpoint As in the history. */
export const upstreamOf = (endpoint: string | null): string =>
  endpoint === null ? none : (/^(?:provider|search):([^/]+)/.exec(endpoint)?.[1] ?? "copilot");
