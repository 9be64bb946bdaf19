/** What is counted of each exchange when it ends, for `/metrics`. Always on: it costs one look-up. */
import { beginningOf } from "../../lib/beginning";
import { BoundedMap } from "../../lib/bounded-map";
import { endedHere } from "../../lib/errors";
import { type CostUnit, costsOf } from "../../lib/money";
import type { Entry } from "../history/entry";
import { addTo, type Distribution, maxSeries, openCounter, openHistogram, type Total } from "./series";

/** One try of an exchange to reach an upstream. */
interface CountedAttempt {
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
  cost: openCounter(["unit", "account", "model", "key"]),
  costUnknown: openCounter(["account", "model", "key"]),
  upstreamErrors: openCounter(["code"]),
  clientTelemetry: openCounter(["kind"]),
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
    if (upstream === "copilot") return beginningOf(model, longestLabel);
    const name = `${upstream} ${model}`;
    if (status < 300 && !served.has(name)) served.set(name, true);
    return served.has(name) || isListed(upstream, model) ? beginningOf(model, longestLabel) : unlisted;
  }

  function countError(code: string): void {
    if (!endedHere.has(code)) families.upstreamErrors.add([code], 1);
  }

  const kinds = new BoundedMap<string, SeriesOfKind>(maxSeries);

  return {
    ...families,
    count(row, attempts) {
      const upstream = upstreamOf(row.upstream_endpoint);
      const kind: KindOfRow = {
        dialect: row.client_dialect,
        model: labelOf(row, upstream),
        upstream,
        account: row.account_key ?? none,
        key: row.key_name ?? none,
        status: classOf(row),
        initiator: row.initiator ?? none,
      };
      const name = `${kind.dialect}\0${kind.model}\0${upstream}\0${kind.account}\0${kind.key}\0${kind.status}\0${kind.initiator}`;
      let series = kinds.get(name);
      if (series === undefined) {
        series = new SeriesOfKind(families, kind);
        kinds.set(name, series);
      }
      series.count(row);
      // The failures of the upstream: statuses, and the words that the history has for errors.
      for (const { status = 0, error } of attempts)
        if (error !== undefined || status >= 400) countError(error ?? String(status));
      if (kind.status === "cut" && row.error_type !== null) countError(row.error_type);
    },
  };
}

/** The labels of a row. */
type KindOfRow = Record<"dialect" | "model" | "upstream" | "account" | "key" | "status" | "initiator", string>;

interface TokenKind {
  name: string;
  column: "input_tokens" | "output_tokens" | "cached_tokens" | "cache_write_tokens" | "reasoning_tokens";
  /** Of the request or of the reply, whose sizes are counted too. */
  isSize?: true;
}

const tokenKinds: readonly TokenKind[] = [
  { name: "input", column: "input_tokens", isSize: true },
  { name: "output", column: "output_tokens", isSize: true },
  { name: "cached", column: "cached_tokens" },
  { name: "cache_write", column: "cache_write_tokens" },
  { name: "reasoning", column: "reasoning_tokens" },
];

interface TokenSeries {
  sum: Total;
  sizes: Distribution | undefined;
}

/** The series of all rows with the same labels, each looked up when something is counted in it for the first time. */
class SeriesOfKind {
  readonly #requests: Total;
  readonly #seconds: Distribution;
  #firstByteSeconds: Distribution | undefined;
  readonly #tokens: Record<string, TokenSeries> = {};
  readonly #cost: Partial<Record<CostUnit, Total>> = {};
  #costUnknown: Total | undefined;

  constructor(
    readonly families: ReturnType<typeof openFamilies>,
    readonly kind: KindOfRow,
  ) {
    const { dialect, model, upstream, account, status, initiator } = kind;
    this.#requests = families.requests.find([dialect, model, account, status, initiator]);
    this.#seconds = families.seconds.find([dialect, model, upstream]);
  }

  count(row: Entry): void {
    const { families } = this;
    const { dialect, model, upstream, account, key } = this.kind;
    this.#requests.total++;
    addTo(this.#seconds, secondBounds, row.duration_ms / 1000);
    if (row.first_byte_ms !== null) {
      this.#firstByteSeconds ??= families.firstByteSeconds.find([dialect, model, upstream]);
      addTo(this.#firstByteSeconds, secondBounds, row.first_byte_ms / 1000);
    }
    for (const tokens of tokenKinds) {
      const count = row[tokens.column];
      // What was estimated is not the upstream's number.
      if (count === null || (tokens.isSize && row.tokens_estimated)) continue;
      const { sum, sizes } = this.#tokens[tokens.name] ?? this.#openTokens(tokens);
      sum.total += count;
      if (sizes) addTo(sizes, tokenBounds, count);
    }
    if (costsOf(row).cost_at_least) {
      this.#costUnknown ??= families.costUnknown.find([account, model, key]);
      this.#costUnknown.total++;
    }
    const { cost, cost_unit: unit } = row;
    if (!cost || unit === null) return;
    this.#cost[unit] ??= families.cost.find([unit, account, model, key]);
    this.#cost[unit].total += cost / 1e9;
  }

  #openTokens({ name, isSize }: TokenKind): TokenSeries {
    const { dialect, model, upstream } = this.kind;
    const labels = [name, dialect, model, upstream];
    const { tokens, requestTokens } = this.families;
    const series = { sum: tokens.find(labels), sizes: isSize && requestTokens.find(labels) };
    this.#tokens[name] = series;
    return series;
  }
}

/** `cut`: the answer began with 200 and ended with an error. */
const classOf = ({ http_status: status, error_type: error }: Entry): string =>
  status < 400 && error !== null ? "cut" : `${Math.floor(status / 100)}xx`;

/** `copilot`, or the name of a provider or of a search engine. @param endpoint As in the history. */
export const upstreamOf = (endpoint: string | null): string =>
  endpoint === null ? none : (/^(?:provider|search):([^/]+)/.exec(endpoint)?.[1] ?? "copilot");
