/** The config, said once: types, defaults, checks, the admin form and the table in config/README.md follow from `configSchema`. */
import { z } from "zod";
import { ProxyError } from "../errors";
import { hostNameSource, isOrigin, maxHostName, maxOrigin } from "../host-name";
import { checkUpstreamUrl } from "./environment";

/** Printable ASCII, for it must pass through a header; blanks at either end would be lost there. */
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
  .refine((name) => !ownHeaders.test(name), "is a header dragoman sets itself");
const headerValue = z
  .string()
  .max(4_096)
  .regex(/^[\t -~]*$/, "must be printable ASCII");

/** Those that frame the request, carry an account's token, or say whether a person asked. */
const ownHeaders =
  /^(x-initiator|host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|authorization|cookie)$/i;

/** The first parts of our own paths: a provider of that name could never be reached, or would hide one of them. */
export const ownSegments: ReadonlySet<string> = new Set(["v1", "admin", "api", "usage", "token", "health", "assets"]);

const providerName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, "must be a name of lower-case letters, digits, - and _, 63 at most")
  .refine((name) => !ownSegments.has(name), "is the beginning of a path of dragoman's own");

/** Where credentials of the machine itself are handed out, in clouds; no provider lives there. */
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
    .describe("What it speaks: anthropic, the Messages API. `vendorx` is another spelling."),
  baseUrl: baseUrl
    .meta({ title: "Base URL" })
    .describe("Its address; `/v1/messages` is added. https, or http for this machine only."),
  apiKey: key.meta({ title: "API key" }).describe("The key that is sent to it.").meta({ secret: true }),
  auth: z
    .enum(["x-api-key", "bearer"])
    .default("x-api-key")
    .meta({ title: "Authentication header" })
    .describe("How the key is sent: in `x-api-key`, or as `Authorization: Bearer`."),
});

const atMost = (max: number) => (record: object) => Object.keys(record).length <= max;

/** Each key has a title (its label in the form) and a description; `secret` values (`secretByName`: those of such names) are never shown, `restart` keys are read from the file at start only. */
export const configSchema = z
  .strictObject({
    auth: z
      .strictObject({
        apiKeys: z
          .array(key)
          .max(1_000)
          .default([])
          .meta({ title: "Client keys" })
          .describe("Keys a client may send; none means that no key is asked for.")
          .meta({ secret: true, restart: true }),
      })
      .prefault({}),
    providers: z
      .record(providerName, provider)
      .refine(atMost(1_000), "expected at most 1000 providers")
      .prefault({})
      .meta({ title: "Providers" })
      .describe("Other upstreams, each by the name that its paths begin with."),
    logLevel: z
      .enum(["error", "warn", "info", "debug"])
      .default("info")
      .meta({ title: "Log level" })
      .describe("How much is written to stderr."),
    retentionDays: z
      .int()
      .min(1)
      .max(3_650)
      .default(14)
      .meta({ title: "Retention in days" })
      .describe("Days a request stays in the history."),
    maxRows: z
      .int()
      .min(1)
      .max(10_000_000)
      .default(200_000)
      .meta({ title: "Maximum history size" })
      .describe("Requests the history keeps at most."),
    allowedOrigins: z
      .array(origin)
      .max(1_000)
      .default([])
      .meta({ title: "Allowed origins" })
      .describe("Web pages that may call from a browser, each an exact origin."),
    allowedHosts: z
      .array(hostName)
      .max(1_000)
      .default([])
      .meta({ title: "Allowed host names" })
      .describe("Names this machine may be called by, beside localhost and addresses."),
    upstreamHeaders: z
      .record(headerName, headerValue)
      .refine(atMost(1_000), "expected at most 1000 headers")
      .default({})
      .meta({ title: "Upstream headers" })
      .describe(
        "Headers added to upstream requests, or replacing ours. The value of one whose name speaks of a key, token or secret is shown masked.",
      )
      .meta({ secretByName: true }),
    accountAffinity: z
      .boolean()
      .default(false)
      .meta({ title: "Account affinity" })
      .describe("A client's session stays with the account that served it, as long as that one can serve."),
    modelAliases: z
      .record(modelId, modelId)
      .refine(atMost(1_000), "expected at most 1000 aliases")
      .default({})
      .meta({ title: "Model aliases" })
      .describe("Other names for models: what a client may ask for, and the model's own id."),
    freeModelRouting: z
      .enum(["round-robin", "in-order"])
      .default("round-robin")
      .meta({ title: "Routing for free models" })
      .describe("Which account serves a model that costs no quota: each in its turn, or the first that can."),
    tokenEstimateMultiplier: z
      .number()
      .min(0.1)
      .max(10)
      .default(1.15)
      .meta({ title: "Token estimate multiplier" })
      .describe("By what an estimate of tokens is multiplied: Claude makes more of them than the local vocabulary."),
    useResponsesApiWebSearch: z
      .boolean()
      .default(true)
      .meta({ title: "Web search in the Responses API" })
      .describe("Send web_search tools upstream; otherwise remove them."),
    anthropicApiKey: key
      .optional()
      .meta({ title: "Anthropic API key" })
      .describe("Key for exact token counts of Claude models.")
      .meta({ secret: true }),
    vendorxApiKey: key.optional().describe("Another spelling of anthropicApiKey.").meta({ secret: true }),
  })
  .refine(({ anthropicApiKey: one, vendorxApiKey: other }) => !one || !other || one === other, {
    path: ["vendorxApiKey"],
    message: "is another spelling of anthropicApiKey, but has a different value; remove one of them",
  })
  .transform(({ vendorxApiKey, ...config }) => ({
    ...config,
    anthropicApiKey: config.anthropicApiKey ?? vendorxApiKey,
  }));

/** What the program reads: every key with its value or default, each under its one name. */
export type Config = z.output<typeof configSchema>;

/** Throws `invalid_request` with one sentence about everything that is wrong; `param` is the path of the first. */
export function parseConfig(value: unknown): Config {
  refuseInherited(value);
  const result = configSchema.safeParse(value);
  if (result.success) return result.data;
  const [first] = faultsOf(result.error);
  throw new ProxyError("invalid_request", explain(result.error), { param: first?.path || undefined });
}

/** Everything a schema found wrong, as one sentence: each fault as its path and what is expected there, never the value. */
export function explain(error: z.ZodError): string {
  const faults = faultsOf(error);
  const said = faults.slice(0, 5).map(({ path, message }) => (path ? `${path}: ${message}` : message));
  const more = faults.length - said.length;
  return `${said.join("; ")}${more > 0 ? `; and ${more} more` : ""}.`;
}

function faultsOf(error: z.ZodError): { path: string; message: string }[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys")
      return issue.keys.map((name) => ({ path: spell([...issue.path, name]), message: "not a known key" }));
    const message = issue.code === "invalid_key" ? issue.issues[0]!.message : issue.message;
    return [{ path: spell(issue.path), message: message.replace(/^Invalid \w+: |^Too \w+: /, "") }];
  });
}

/** A path as people write it: `auth.apiKeys[1]`. */
export function spell(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part).slice(0, 100)}`))
    .join("")
    .replace(/^\./, "");
}

/** Names every object inherits are no keys of ours, and a record would drop or shadow them. Nothing we know is deeper than 8. */
export function refuseInherited(value: unknown, path: PropertyKey[] = []): void {
  if (typeof value !== "object" || value === null || path.length > 8) return;
  for (const [name, inner] of Object.entries(value)) {
    const inside = [...path, Array.isArray(value) ? Number(name) : name];
    if (["__proto__", "constructor", "prototype"].includes(name))
      throw new ProxyError("invalid_request", `${spell(inside)}: not a known key.`, { param: spell(inside) });
    refuseInherited(inner, inside);
  }
}

/** What is wrong with a provider's address, as the end of a sentence about it. */
function faultOfUrl(given: string): string | undefined {
  try {
    const url = checkUpstreamUrl("", given);
    return metadataHost.test(new URL(url).hostname) ? "must not be a metadata or link-local address" : undefined;
  } catch (thrown) {
    if (!(thrown instanceof ProxyError)) throw thrown;
    return thrown.message.trim().replace(/\.$/, "");
  }
}
