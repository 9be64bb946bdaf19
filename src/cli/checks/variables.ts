/** Environment variables that send clients, or dragoman, to another address than intended. */
import { cloudsIn } from "../../clients/caveats";
import { proxyOfLoopback } from "../../lib/net/out/proxy";
import { about, type CheckContext, type Finding } from "./check";
import { addressOf } from "./port";

const variables = about("variables");

/** The variables from which clients read their address. */
const addresses = ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GOOGLE_GEMINI_BASE_URL"];

export function checkVariables(subject: CheckContext): Finding[] {
  const { env } = subject;
  const found = [
    ...addresses.flatMap((name) => elsewhere(name, env[name]?.trim(), addressOf(subject))),
    ...cloudsIn(env).map(({ name, cloud }) =>
      variables.warn(`${name} is set: Claude Code uses ${cloud} instead of dragoman.`, `Unset ${name}.`),
    ),
    ...bothKeys(env),
    ...proxiedLoopback(env),
    ...uncheckedTls(env),
  ];
  return found.length > 0 ? found : [variables.ok("No variable sends a client elsewhere.")];
}

function elsewhere(name: string, value: string | undefined, here: string): Finding[] {
  if (!value || hostOf(value) === hostOf(here)) return [];
  const where = hostOf(value) ?? "an invalid address";
  return [
    variables.warn(
      `${name} sends clients to ${where} instead of ${here}.`,
      `Unset it, or set it to ${here}${name.startsWith("OPENAI") ? "/v1" : ""} where you start the client.`,
    ),
  ];
}

/** Host and port, with one name for this machine; undefined if it is not an address. */
function hostOf(address: string): string | undefined {
  return URL.parse(address)?.host.replace(/^(?:localhost|\[::1\])(?=:|$)/, "127.0.0.1");
}

function bothKeys({ ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN }: CheckContext["env"]): Finding[] {
  if (!ANTHROPIC_API_KEY?.trim() || !ANTHROPIC_AUTH_TOKEN?.trim()) return [];
  return [
    variables.warn(
      "ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN are both set: Claude Code warns about that and may use the wrong one.",
      "Keep only ANTHROPIC_AUTH_TOKEN where you start Claude Code. (dragoman itself uses ANTHROPIC_API_KEY for exact token counts.)",
    ),
  ];
}

/** Many clients use the proxy even for this machine. */
function proxiedLoopback(env: CheckContext["env"]): Finding[] {
  const named = proxyOfLoopback(env);
  if (named === undefined) return [];
  return [
    variables.warn(
      `${named} is set, and NO_PROXY does not include 127.0.0.1: some clients would call dragoman through that proxy.`,
      "Add localhost,127.0.0.1,::1 to NO_PROXY where you start the clients.",
    ),
  ];
}

function uncheckedTls({ NODE_TLS_REJECT_UNAUTHORIZED }: CheckContext["env"]): Finding[] {
  if (NODE_TLS_REJECT_UNAUTHORIZED !== "0") return [];
  return [
    variables.warn(
      "NODE_TLS_REJECT_UNAUTHORIZED=0 turns certificate checks off, so anyone can impersonate any server. dragoman checks certificates anyway; other tools do not.",
      "Unset it, and set NODE_EXTRA_CA_CERTS to the company's root certificate instead.",
    ),
  ];
}
