/**
 * Experimental: asks GitHub's own Copilot CLI, which a person has installed and signed in, where its models are and with which token
 * and headers. The CLI is started for a question and stopped after it.
 *
 * `session.provider.getEndpoint` is there so that a program asks the models with a client of its own (copilot-sdk#1621). It is
 * marked experimental and needs a variable. Tried with Copilot CLI 1.0.102 (protocol 3) of npm, without an account, against a
 * simulation on loopback, on 2026-11-28: it answers within four seconds, takes 245 MB meanwhile, hands out the CLI's GitHub token and
 * its headers, for Claude, GPT and Gemini alike, and no token that is bound to a session or a model. So one session serves all models.
 * A deleted session leaves nothing, and a start an empty log file. `test/clients/cli-endpoint.ts` tries the newest version.
 */
import { tmpdir } from "node:os";
import { z } from "zod";
import { asProxyError, codeOf, ProxyError } from "../../lib/errors";
import { hourMs } from "../../lib/format";
import { lazy } from "../../lib/lazy";
import { withTimeLimit } from "../../lib/net/time-limit";
import type { GithubToken } from "./github";
import { allowedModelHost, type Hosts } from "./hosts";
import { JsonRpc } from "./json-rpc";

/** A login does not say when it ends; a refusal asks again at once. */
const usualLifetime = 12 * hourMs;
const timeoutMs = 30_000;

/** Who is signed in to the CLI. @param command A path, or a name on the PATH. @throws ProxyError `no_account`, `upstream`, `timeout` */
export const signedInToCli = (command: string): Promise<{ login: string; host: string }> => withCli(command, whoIs);

/** @throws ProxyError `no_account` if a person has to act; `upstream`, `timeout` */
export const endpointOfCli = (command: string, hosts: Hosts, now: () => number): Promise<GithubToken> =>
  withCli(command, async (rpc) => {
    await whoIs(rpc);
    const made = created().safeParse(await rpc.ask("session.create", hidden));
    if (!made.success) throw changed("opens no session");
    const { sessionId } = made.data;
    try {
      const found = endpoint().safeParse(await rpc.ask("session.provider.getEndpoint", { sessionId }));
      if (!found.success) throw changed("names no address and token of its models");
      return tokenOf(found.data, hosts, now);
    } finally {
      // Nobody resumes it.
      await rpc.ask("session.delete", { sessionId }).catch(() => {});
    }
  });

/** A session that nobody sees and that may do nothing. */
const hidden = {
  clientName: "dragoman",
  requestPermission: false,
  requestUserInput: false,
  requestElicitation: false,
  requestExitPlanMode: false,
  requestAutoModeSwitch: false,
  hooks: false,
  envValueMode: "direct",
};

function tokenOf({ baseUrl, apiKey, headers, sessionToken }: Endpoint, hosts: Hosts, now: () => number): GithubToken {
  const host = allowedModelHost(baseUrl, hosts);
  if (host === undefined) throw changed(`names ${baseUrl.slice(0, 200)}, where tokens are not sent,`);
  if (sessionToken?.model !== undefined) throw changed("hands out tokens for one model only");
  const ends = sessionToken?.expiresAt === undefined ? Number.NaN : Date.parse(sessionToken.expiresAt) - now();
  const all = { ...headers, ...(sessionToken && { [sessionToken.header]: sessionToken.token }) };
  return { token: apiKey, lifetime: ends > 0 ? ends : usualLifetime, endpoint: { baseUrl: host, headers: sent(all) } };
}

/** What a request says of itself, and of its connection, is not the CLI's to say. */
const ours =
  /^(?:authorization|accept|accept-encoding|content-.*|host|connection|transfer-encoding|x-initiator|x-request-id)$/;

const sent = (headers: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(headers)
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name, value]) => /^[a-z0-9-]+$/.test(name) && /^[ -~]*$/.test(value) && !ours.test(name)),
  );

async function whoIs(rpc: JsonRpc): Promise<{ login: string; host: string }> {
  await rpc.ask("connect");
  const read = status().safeParse(await rpc.ask("auth.getStatus"));
  if (!read.success) throw changed("does not say who is signed in");
  const { isAuthenticated, login, host } = read.data;
  if (!isAuthenticated || !login)
    throw mustAct("The Copilot CLI is not signed in, or not as a person: run `copilot login`.");
  return { login, host: URL.parse(host)?.hostname ?? host };
}

async function withCli<T>(command: string, work: (rpc: JsonRpc) => Promise<T>): Promise<T> {
  const path = Bun.which(command);
  if (path === null)
    throw mustAct(
      `The Copilot CLI ${command} is not on this machine: install it with \`npm install -g @github/copilot\`, and sign in with \`copilot login\`.`,
    );
  const child = startCli(path);
  const rpc = new JsonRpc(child);
  try {
    return await withTimeLimit(work(rpc), timeoutMs, () => {
      throw new ProxyError("timeout", `The Copilot CLI did not answer within ${timeoutMs / 1000} s.`);
    });
  } catch (thrown) {
    const { kind, message, details } = asProxyError(thrown);
    if (details.code === "unknown_method") throw changed("does not know a question that dragoman asks,");
    throw kind === "upstream"
      ? new ProxyError(kind, `The Copilot CLI gives no access to its models: ${message}`)
      : thrown;
  } finally {
    await withTimeLimit(rpc.ask("runtime.shutdown"), 2_000, () => undefined).catch(() => {});
    child.kill();
  }
}

function startCli(path: string) {
  try {
    return Bun.spawn([path, "--headless", "--no-auto-update", "--log-level", "none", "--stdio"], {
      // It reads the instructions and settings of the folder it is in.
      cwd: tmpdir(),
      env: { ...withoutOwn(process.env), COPILOT_ALLOW_GET_PROVIDER_ENDPOINT: "true" },
      stdio: ["pipe", "pipe", "ignore"],
    });
  } catch (cause) {
    throw mustAct(`The Copilot CLI ${path} cannot be started (${codeOf(cause) ?? "unknown"}).`);
  }
}

/** dragoman's secrets are none of its business. */
const withoutOwn = (env: Record<string, string | undefined>) =>
  Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^(?:DRAGOMAN_|PROXY_A|ADMIN_TOKEN|ANTHROPIC_|VENDORX_)/.test(name)),
  );

const mustAct = (sentence: string) => new ProxyError("no_account", sentence);
const changed = (how: string) =>
  mustAct(
    `The Copilot CLI of this machine ${how}: its releases change this experimental way, and dragoman has to follow.`,
  );

const status = lazy(() =>
  z.object({ isAuthenticated: z.boolean(), login: z.string().catch(""), host: z.string().catch("github.com") }),
);
const created = lazy(() => z.object({ sessionId: z.string() }));
/** `ProviderEndpoint` of the SDK's schema, 1.0.14. */
const endpoint = lazy(() =>
  z.object({
    baseUrl: z.string(),
    apiKey: z.string().min(4),
    headers: z.record(z.string(), z.string()).catch({}),
    sessionToken: z
      .object({
        token: z.string(),
        header: z.string(),
        model: z.string().optional(),
        expiresAt: z.string().optional(),
      })
      .optional(),
  }),
);
type Endpoint = z.infer<ReturnType<typeof endpoint>>;
