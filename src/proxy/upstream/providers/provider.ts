/** Providers: other upstreams that the owner configured. This file adds the key, and filters the headers in both directions. */

import type { ProviderConfig } from "../../../config/provider-schema";
import type { Config } from "../../../config/schema";
import type { Dialect } from "../../../dialects/hub/conversation";
import { embeddingsPaths, upstreamPaths } from "../../../lib/api-paths";
import { ProxyError, quoted, words } from "../../../lib/errors";
import type { CallResponse } from "../../../lib/net/out/body";
import { type CallOptions, callOut } from "../../../lib/net/out/fetch";
import { openFailureCounter } from "../../../people/accounts/breaker";

export interface Providers {
  /** The names of all providers, as configured now. */
  names(): string[];
  /** The provider as configured now. @throws ProxyError `not_found` */
  find(name: string): Provider;
  /** The provider of a model that a client named `<provider>/<model>`, and its name there; undefined if no provider has this name. */
  findByModel(name: string): { provider: Provider; model: string } | undefined;
  /** Whether this process sent the request: a provider's address leads back to dragoman. */
  isOurOwn(headers: Headers): boolean;
}

export interface Provider {
  name: string;
  /** For sentences: `The provider deepseek`. */
  who: string;
  dialect: Dialect;
  settings: ProviderConfig;
  /** The path of an operation, after the base URL. */
  pathOf(operation: ProviderOperation): string;
  /** @throws ProxyError `upstream`, `timeout`, naming the provider; `loop`. */
  call(call: ProviderCall): Promise<CallResponse>;
  /** The provider's text without its key, which some providers repeat in errors. */
  withoutKey(text: string): string;
  breaker: ProviderBreaker;
}

/** Lets a provider cool down after five failed requests in a row: another model serves then, where a chain names one. */
interface ProviderBreaker {
  /** While it cools down: why, as a sentence. */
  readonly cooling: string | undefined;
  served(): void;
  /**
   * @param why A status or a kind of error.
   * @returns When the cooldown that this began will end, as a timestamp; undefined if it began none.
   */
  failed(why: string): number | undefined;
}

export type ProviderOperation = "generate" | "list" | "embed";

/** Without a controller the request's own signal ends the call. */
interface ProviderCall extends CallOptions {
  operation: ProviderOperation;
  /** The client's request: the proxies that it went through are passed on. Missing for a call of dragoman's own. */
  request?: Request;
  /** The client speaks the provider's dialect: a few of its headers and query parameters are passed on too. */
  passesHeaders?: boolean;
}

/** The ids of the processes that a call went through, newest last. A chain of proxies is allowed, a loop is not. */
const hopHeader = "x-dragoman-hops";
const maxHops = 8;

interface Clocks {
  /** Wall clock, ms. */
  now(): number;
  /** Milliseconds. */
  monotonic(): number;
}

export function openProviders(
  config: { readonly current: Pick<Config, "providers"> },
  version: string,
  clocks: Clocks,
): Providers {
  const ownId = crypto.randomUUID();
  const breakerOf = openProviderBreakers(clocks);
  const known = (name: string): Provider | undefined => {
    const { providers } = config.current;
    return Object.hasOwn(providers, name)
      ? providerOf(name, providers[name]!, { ownId, version, breakerOf })
      : undefined;
  };
  return {
    names: () => Object.keys(config.current.providers),
    find(name) {
      const provider = known(name);
      if (!provider)
        throw new ProxyError("not_found", words`There is no provider ${quoted(name)} in the config.`, {
          code: "provider_not_found",
        });
      return provider;
    },
    findByModel(name) {
      const end = name.indexOf("/");
      const provider = end > 0 && end < name.length - 1 ? known(name.slice(0, end)) : undefined;
      return provider && { provider, model: name.slice(end + 1) };
    },
    isOurOwn: (headers) => headers.get(hopHeader)?.includes(ownId) ?? false,
  };
}

/** Of each provider in the config: a changed one begins anew. */
function openProviderBreakers({ now, monotonic }: Clocks) {
  const counter = openFailureCounter<ProviderConfig>();
  /** `until` is a time of the monotonic clock: a wall clock that is set makes no cooldown longer. */
  const rests = new WeakMap<ProviderConfig, { until: number; why: string }>();
  return (settings: ProviderConfig, who: string): ProviderBreaker => ({
    get cooling() {
      const rest = rests.get(settings);
      return rest && rest.until > monotonic()
        ? `${who} is cooling down: its last requests all failed (${rest.why}).`
        : undefined;
    },
    served() {
      counter.served(settings);
      rests.delete(settings);
    },
    failed(why) {
      // A request that fails during a cooldown is no probe.
      if ((rests.get(settings)?.until ?? Number.NEGATIVE_INFINITY) > monotonic()) return undefined;
      const cooldownMs = counter.failed(settings, true);
      if (cooldownMs === undefined) return undefined;
      rests.set(settings, { until: monotonic() + cooldownMs, why });
      return now() + cooldownMs;
    },
  });
}

interface ProviderParts {
  /** Of this process. */
  ownId: string;
  version: string;
  breakerOf: ReturnType<typeof openProviderBreakers>;
}

function providerOf(name: string, settings: ProviderConfig, { ownId, version, breakerOf }: ProviderParts): Provider {
  const who = `The provider ${name}`;
  const { apiKey } = settings;
  const dialect = dialectOf(settings);
  const pathOf = (operation: ProviderOperation) => paths[operation](dialect);
  return {
    name,
    who,
    dialect,
    settings,
    pathOf,
    breaker: breakerOf(settings, who),
    async call({ operation, request, passesHeaders = false, headers: own, body, controller, limits, listener }) {
      const hops = request ? hopsOf(request.headers) : [];
      if (hops.length >= maxHops)
        throw new ProxyError("loop", `The request to ${who.replace("The", "the")} went through too many proxies.`);
      const isMessages = dialect === "messages";
      const client = passesHeaders ? request : undefined;
      const headers = {
        accept: client?.headers.get("accept") ?? "*/*",
        ...(isMessages ? versionsOf(client?.headers) : {}),
        ...own,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...keyHeader(settings),
        // Compression saves nothing on a stream of small events, and a compressed answer can expand to any size.
        "accept-encoding": "identity",
        "user-agent": `dragoman/${version}`,
        [hopHeader]: [...hops, ownId].join(","),
      };
      const query = client && isMessages ? passedQuery(client.url) : "";
      return callOut(addressOf(settings, dialect) + pathOf(operation) + query, {
        method: body === undefined ? "GET" : "POST",
        headers,
        body,
        signal: request?.signal,
        controller,
        limits,
        who,
        listener,
      });
    },
    withoutKey: (text) => (apiKey === undefined ? text : text.replaceAll(apiKey, "[secret]")),
  };
}

const dialectOf = ({ type }: ProviderConfig): Dialect => (type === "chat" || type === "responses" ? type : "messages");

/** Only the paths of the messages dialect carry a version; the base URLs of the others do. */
const paths: Record<ProviderOperation, (dialect: Dialect) => string> = {
  generate: (dialect) => upstreamPaths[dialect],
  list: (dialect) => (dialect === "messages" ? "/v1/models" : "/models"),
  embed: () => embeddingsPaths.upstream,
};

const addressOf = ({ baseUrl }: ProviderConfig, dialect: Dialect): string =>
  dialect === "messages" ? baseUrl.replace(/\/v1$/, "") : baseUrl;

function keyHeader({ auth, apiKey }: ProviderConfig): Record<string, string> {
  if (apiKey === undefined) return {};
  return auth === "bearer" ? { authorization: `Bearer ${apiKey}` } : { [auth]: apiKey };
}

const hopsOf = (headers: Headers): string[] =>
  headers.get(hopHeader)?.match(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g) ?? [];

/** The version and the betas of the messages dialect that a client asked for. */
function versionsOf(client: Headers | undefined): Record<string, string> {
  const betas = client?.get("anthropic-beta") ?? client?.get("vendorx-beta") ?? null;
  return {
    "anthropic-version": client?.get("anthropic-version") ?? "2023-06-01",
    ...(betas === null ? {} : { "anthropic-beta": betas }),
  };
}

/** The query parameters of the API, and their valid values. */
const parameters: Readonly<Record<string, RegExp>> = {
  beta: /^true$/,
  limit: /^\d{1,4}$/,
  after_id: /^[\w.:-]{1,200}$/,
  before_id: /^[\w.:-]{1,200}$/,
};

function passedQuery(url: string): string {
  const passed = [...new URL(url).searchParams].filter(
    ([name, value]) => Object.hasOwn(parameters, name) && parameters[name]!.test(value),
  );
  return passed.length === 0 ? "" : `?${new URLSearchParams(passed)}`;
}

/**
 * A provider's headers that the client gets, without its key. Not the content type: an HTML page from this origin could call the
 * admin API.
 */
export function passedDown({ withoutKey }: Pick<Provider, "withoutKey">, headers: Headers): [string, string][] {
  return [...headers].flatMap(([name, value]) => (passedHeader.test(name) ? [[name, withoutKey(value)]] : []));
}

const passedHeader = /^(?:request-id|retry-after(?:-ms)?|x-should-retry|(?:anthropic-|x-)?ratelimit(?:-[\w-]+)?)$/;
