/** Providers: other upstreams that the owner configured. This file adds the key, and filters the headers in both directions. */
import type { Config } from "../config/schema";
import type { ConfigStore } from "../config/store";
import { ProxyError } from "../errors";
import type { CallResponse } from "../net/body";
import type { CallLimits } from "../net/clock";
import { callOut } from "../net/fetch";

export interface Providers {
  /** The provider as configured now. @throws ProxyError `not_found` */
  find(name: string): Provider;
  /** Whether this process sent the request: a provider's address leads back to dragoman. */
  isOurOwn(headers: Headers): boolean;
}

export interface Provider {
  name: string;
  /** For sentences: `The provider deepseek`. */
  who: string;
  /** @throws ProxyError `upstream`, `timeout`, naming the provider; `loop`. */
  call(call: ProviderCall): Promise<CallResponse>;
  /** The provider's text without its key, which some providers repeat in errors. */
  withoutKey(text: string): string;
}

export interface ProviderCall {
  path: "/v1/messages" | "/v1/models";
  /** The client's request; a few of its headers and query parameters are passed on. */
  request: Request;
  /** If missing, the request is a GET. */
  body?: string | Uint8Array;
  /** As in `OutgoingCall`; without one the request's own signal ends the call. */
  controller?: AbortController;
  limits: CallLimits;
  retried?: (why: string) => void;
  /** Called with the error of the first try when a request is sent a second time. Without it, a request is sent once. */
  resent?: (error: ProxyError) => void;
}

/** The ids of the processes that a call went through, newest last. A chain of proxies is allowed, a loop is not. */
const hopHeader = "x-dragoman-hops";
const maxHops = 8;

export function openProviders(config: Pick<ConfigStore, "current">, version: string): Providers {
  const ownId = crypto.randomUUID();
  return {
    find(name) {
      const { providers } = config.current;
      const known = Object.hasOwn(providers, name) ? providers[name] : undefined;
      if (!known)
        throw new ProxyError("not_found", `There is no provider ${name.slice(0, 63)} in the config.`, {
          code: "provider_not_found",
        });
      return providerOf(name, known, ownId, version);
    },
    isOurOwn: (headers) => hopsOf(headers).includes(ownId),
  };
}

function providerOf(
  name: string,
  { baseUrl, apiKey, auth }: Config["providers"][string],
  ownId: string,
  version: string,
): Provider {
  const who = `The provider ${name}`;
  return {
    name,
    who,
    async call({ path, request, body, controller, limits, retried, resent }) {
      const hops = hopsOf(request.headers);
      if (hops.length >= maxHops)
        throw new ProxyError("loop", `The request to ${who.replace("The", "the")} went through too many proxies.`);
      const headers = {
        ...passedHeaders(request.headers),
        ...(auth === "bearer" ? { authorization: `Bearer ${apiKey}` } : { "x-api-key": apiKey }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        // Compression saves nothing on a stream of small events, and a compressed answer can expand to any size.
        "accept-encoding": "identity",
        "user-agent": `dragoman/${version}`,
        [hopHeader]: [...hops, ownId].join(","),
      };
      return callOut(baseUrl.replace(/\/v1$/, "") + path + passedQuery(request.url), {
        method: body === undefined ? "GET" : "POST",
        headers,
        body,
        signal: request.signal,
        controller,
        limits,
        who,
        retried,
        resent:
          resent &&
          ((error) => {
            resent(error);
            return headers;
          }),
      });
    },
    withoutKey: (text) => text.replaceAll(apiKey, "[secret]"),
  };
}

const hopsOf = (headers: Headers): string[] =>
  headers.get(hopHeader)?.match(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g) ?? [];

/** The client's headers that a provider gets. */
function passedHeaders(client: Headers): Record<string, string> {
  const betas = client.get("anthropic-beta") ?? client.get("vendorx-beta");
  return {
    accept: client.get("accept") ?? "*/*",
    "anthropic-version": client.get("anthropic-version") ?? "2023-06-01",
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

/** A provider's headers that the client gets. Not the content type: an HTML page from this origin could call the admin API. */
export function passedDown(headers: Headers): [string, string][] {
  return [...headers].filter(([name]) => passedHeader.test(name));
}

const passedHeader = /^(?:request-id|retry-after(?:-ms)?|x-should-retry|(?:anthropic-|x-)?ratelimit(?:-[\w-]+)?)$/;
