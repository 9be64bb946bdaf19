/** The config, defined once: types, defaults, validation, the admin form and the table in config/README.md follow from `configSchema`. */
import { z } from "zod";
import { ProxyError } from "../errors";
import { hostNameSource, isOrigin, maxHostName, maxOrigin } from "../host-name";
import { checkUpstreamUrl } from "./environment";

/** Printable ASCII, because it is sent in a header; a header loses spaces at either end. */
const key = z
  .string()
  .max(1_000)
  .regex(/^[!-~](?:[ -~]*[!-~])?$/, "must be printable ASCII, not blank, without a space at either end");
const modelId = z.string().trim().min(1).max(256);
const origin = z.string().max(maxOrigin).refine(isOrigin, "must be an exact origin, such as http://localhost:3000");
const hostName = z
  .string()
  .toLowerCase()
  .max(maxHostName)
  .regex(new RegExp(`^${hostNameSource}$`), "must be a bare host name, without port or path");
const headerName = z
  .string()
  .max(100)
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "must be a header name")
  .refine((name) => !ownHeaders.test(name), "is a header that dragoman sets itself");
const headerValue = z
  .string()
  .max(4_096)
  .regex(/^[\t -~]*$/, "must be printable ASCII");

/** Headers that frame the request, carry an account's token, or state the initiator. */
const ownHeaders =
  /^(x-initiator|host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|authorization|cookie)$/i;

/** The first segments of dragoman's own paths: a provider of such a name could not be reached, or would hide one of them. */
export const ownSegments: ReadonlySet<string> = new Set(["v1", "admin", "api", "usage", "token", "health", "assets"]);

const providerName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9_-]{0,62}$/,
    "must be at most 63 lower-case letters, digits, - and _, and begin with a letter or digit",
  )
  .refine((name) => !ownSegments.has(name), "is the first segment of one of dragoman's own paths");

/** Addresses at which clouds hand out the machine's own credentials; no provider is there. */
const metadataHost =
  /^(?:169\.254\.\d+\.\d+|100\.100\.100\.200|\[fd00:ec2::254\]|\[fe[89ab].*\]|\[::ffff:a9fe:.*\]|metadata(?:\.google\.internal)?\.?)$/;

const baseUrl = z
  .string()
  .max(2_048)
  .transform((given, context) => {
    const fault = faultOfUrl(given);
    if (fault === undefined) return checkUpstreamUrl("", given);
    context.addIssue({ code: "custom", message: fault });
    return z.NEVER;
  });

const provider = z.strictObject({
  type: z
    .enum(["anthropic", "vendorx"])
    .transform(() => "anthropic" as const)
    .meta({ title: "API" })
    .describe("The API it offers: `anthropic` is the Messages API; `vendorx` means the same."),
  baseUrl: baseUrl
    .meta({ title: "Base URL" })
    .describe("The address before `/v1/messages`. Use https; http is allowed for this machine only."),
  apiKey: key.meta({ title: "API key" }).describe("The key that dragoman sends to it.").meta({ secret: true }),
  auth: z
    .enum(["x-api-key", "bearer"])
    .default("x-api-key")
    .meta({ title: "Authentication header" })
    .describe("How the key is sent: in `x-api-key`, or as `Authorization: Bearer`."),
});

const atMost = (max: number) => (record: object) => Object.keys(record).length <= max;

/**
 * Each key has a title (its label in the form) and a description. `secret` values are never shown; `secretByName` applies
 * to the values whose name suggests a secret. `restart` keys are read from the file only at start.
 */
export const configSchema = z
  .strictObject({
    auth: z
      .strictObject({
        apiKeys: z
          .array(key)
          .max(1_000)
          .default([])
          .meta({ title: "Client keys" })
          .describe("The keys that clients may send. If there are none, clients need no key.")
          .meta({ secret: true, restart: true }),
      })
      .prefault({}),
    providers: z
      .record(providerName, provider)
      .refine(atMost(1_000), "expected at most 1000 providers")
      .prefault({})
      .meta({ title: "Providers" })
      .describe("Other upstreams, by name. The name is the first segment of their paths."),
    logLevel: z
      .enum(["error", "warn", "info", "debug"])
      .default("info")
      .meta({ title: "Log level" })
      .describe("The least severe level that is written to stderr."),
    retentionDays: z
      .int()
      .min(1)
      .max(3_650)
      .default(14)
      .meta({ title: "Retention in days" })
      .describe("How many days a request stays in the history."),
    maxRows: z
      .int()
      .min(1)
      .max(10_000_000)
      .default(200_000)
      .meta({ title: "Maximum history size" })
      .describe("How many requests the history keeps at most."),
    allowedOrigins: z
      .array(origin)
      .max(1_000)
      .default([])
      .meta({ title: "Allowed origins" })
      .describe("Origins of web pages that may call dragoman from a browser."),
    allowedHosts: z
      .array(hostName)
      .max(1_000)
      .default([])
      .meta({ title: "Allowed host names" })
      .describe("Host names under which dragoman may be called, in addition to localhost and IP addresses."),
    upstreamHeaders: z
      .record(headerName, headerValue)
      .refine(atMost(1_000), "expected at most 1000 headers")
      .default({})
      .meta({ title: "Upstream headers" })
      .describe(
        "Headers that are added to upstream requests or replace dragoman's own. Values are masked if the name suggests a key, token or secret.",
      )
      .meta({ secretByName: true }),
    accountAffinity: z
      .boolean()
      .default(false)
      .meta({ title: "Account affinity" })
      .describe("Keep a client's session on the account that served it before, as long as that account is ready."),
    modelAliases: z
      .record(modelId, modelId)
      .refine(atMost(1_000), "expected at most 1000 aliases")
      .default({})
      .meta({ title: "Model aliases" })
      .describe("Other names for models: the name that a client sends, and the model's id."),
    freeModelRouting: z
      .enum(["round-robin", "in-order"])
      .default("round-robin")
      .meta({ title: "Routing for free models" })
      .describe(
        "Which account serves a model that uses no quota: each in turn, or always the first one that is ready.",
      ),
    tokenEstimateMultiplier: z
      .number()
      .min(0.1)
      .max(10)
      .default(1.15)
      .meta({ title: "Token estimate multiplier" })
      .describe(
        "Factor for estimated token counts: Claude's tokenizer makes more tokens of a text than the local one.",
      ),
    useResponsesApiWebSearch: z
      .boolean()
      .default(true)
      .meta({ title: "Web search in the Responses API" })
      .describe("Send web_search tools upstream. If off, they are removed."),
    anthropicApiKey: key
      .optional()
      .meta({ title: "Anthropic API key" })
      .describe("Anthropic's API key, for exact token counts of Claude models.")
      .meta({ secret: true }),
    vendorxApiKey: key.optional().describe("Means the same as anthropicApiKey.").meta({ secret: true }),
  })
  .refine(({ anthropicApiKey: one, vendorxApiKey: other }) => !one || !other || one === other, {
    path: ["vendorxApiKey"],
    message: "means the same as anthropicApiKey, but has a different value; remove one of them",
  })
  .transform(({ vendorxApiKey, ...config }) => ({
    ...config,
    anthropicApiKey: config.anthropicApiKey ?? vendorxApiKey,
  }));

/** The config in effect: every key with its value or default. */
export type Config = z.output<typeof configSchema>;

/** @throws ProxyError `invalid_request` with one sentence about all errors; `param` is the path of the first one. */
export function parseConfig(value: unknown): Config {
  refuseInherited(value);
  const result = configSchema.safeParse(value);
  if (result.success) return result.data;
  const [first] = faultsOf(result.error);
  throw new ProxyError("invalid_request", explain(result.error), { param: first?.path || undefined });
}

/** All errors of a schema as one sentence: the path of each and what is expected there, never the value. */
export function explain(error: z.ZodError): string {
  const faults = faultsOf(error);
  const shown = faults.slice(0, 5).map(({ path, message }) => (path ? `${path}: ${message}` : message));
  const more = faults.length - shown.length;
  return `${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}.`;
}

function faultsOf(error: z.ZodError): { path: string; message: string }[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys")
      return issue.keys.map((name) => ({ path: spell([...issue.path, name]), message: "not a known key" }));
    const message = issue.code === "invalid_key" ? issue.issues[0]!.message : issue.message;
    return [{ path: spell(issue.path), message: message.replace(/^Invalid \w+: |^Too \w+: /, "") }];
  });
}

/** A path in the usual notation: `auth.apiKeys[1]`. */
export function spell(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part).slice(0, 100)}`))
    .join("")
    .replace(/^\./, "");
}

/** Names that every object inherits are not config keys, and a record would drop or shadow them. No known key is deeper than 8. */
export function refuseInherited(value: unknown, path: PropertyKey[] = []): void {
  if (typeof value !== "object" || value === null || path.length > 8) return;
  for (const [name, inner] of Object.entries(value)) {
    const inside = [...path, Array.isArray(value) ? Number(name) : name];
    if (["__proto__", "constructor", "prototype"].includes(name))
      throw new ProxyError("invalid_request", `${spell(inside)}: not a known key.`, { param: spell(inside) });
    refuseInherited(inner, inside);
  }
}

/** What is wrong with a provider's address, for the end of a sentence about it. */
function faultOfUrl(given: string): string | undefined {
  try {
    const url = checkUpstreamUrl("", given);
    return metadataHost.test(new URL(url).hostname) ? "must not be a metadata or link-local address" : undefined;
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    return thrown.message.trim().replace(/\.$/, "");
  }
}
