/** What is counted of each exchange when it ends, for `/metrics` and OpenTelemetry. Always on: it costs one look-up. */
import { beginningOf } from "../beginning";
import { BoundedMap } from "../bounded-map";
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
  credits: openCounter(["account", "model", "key"]),
  premiumUnits: openCounter(["account", "model"]),
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
    const name = `${upstream} ${model}`;
    if (status < 300 && !served.has(name)) served.set(name, true);
    const isKnown = upstream === "copilot" || served.has(name) || isListed(upstream, model);
    return isKnown ? beginningOf(model, longestLabel) : unlisted;
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
      for (const code of errorCodes(row, attempts)) families.upstreamErrors.add([code], 1);
    },
  };
}

/** The labels of a row. */
type KindOfRow = Record<"dialect" | "model" | "upstream" | "account" | "key" | "status" | "initiator", string>;

/** The series of all rows with the same labels, each looked up when something is counted in it for the first time. */
class SeriesOfKind {
  readonly #requests: Total;
  readonly #seconds: Distribution;
  #firstByteSeconds: Distribution | undefined;
  readonly #tokens: Record<string, Total> = {};
  readonly #requestTokens: Record<string, Distribution> = {};

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
    // What was estimated is not the upstream's number.
    if (!row.tokens_estimated) {
      this.#countPart("input", row.input_tokens);
      this.#countPart("output", row.output_tokens);
    }
    this.#countTokens("cached", row.cached_tokens);
    this.#countTokens("cache_write", row.cache_write_tokens);
    this.#countTokens("reasoning", row.reasoning_tokens);
    if (row.nano_credits) families.credits.add([account, model, key], row.nano_credits / 1e9);
    if (row.premium_units) families.premiumUnits.add([account, model], row.premium_units);
  }

  /** Of the request or of the reply, whose sizes are counted too. */
  #countPart(name: string, count: number | null): void {
    if (count === null) return;
    this.#countTokens(name, count);
    this.#requestTokens[name] ??= this.families.requestTokens.find(this.#tokenLabels(name));
    addTo(this.#requestTokens[name], tokenBounds, count);
  }

  #countTokens(name: string, count: number | null): void {
    if (count === null) return;
    this.#tokens[name] ??= this.families.tokens.find(this.#tokenLabels(name));
    this.#tokens[name].total += count;
  }

  #tokenLabels(name: string): string[] {
    const { dialect, model, upstream } = this.kind;
    return [name, dialect, model, upstream];
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
