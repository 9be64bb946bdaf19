/** What in a tool's own files keeps it, or part of it, from dragoman although the address is right. */
import { join } from "node:path";
import { isLoopbackUrl } from "../lib/net/address";
import { proxyOfLoopback } from "../lib/net/out/proxy";
import { type Path, settingAt } from "./edit";
import type { SettingsFormat } from "./formats";
import type { Surroundings } from "./locate";

export interface Caveat {
  /** As the end of a sentence: `… , but <says>.` */
  says: string;
  /** It takes precedence over our address: the client does not call dragoman. */
  overrides: boolean;
}

/** What is known where settings are looked at. */
export interface Look {
  /** Whether an address is dragoman's. */
  isHere(address: unknown): boolean;
  /** The server's address. */
  url: string;
  /** The person's environment. */
  env: Surroundings["env"];
}

/** A further file of a client, which is only looked at. */
export interface Beside {
  path: string;
  format: SettingsFormat;
  caveats(settings: Record<string, unknown>, look: Look): Caveat[];
}

const overriding = (says: string): Caveat => ({ says, overrides: true });
const partly = (says: string): Caveat => ({ says, overrides: false });

/** Variables that make Claude Code use a cloud instead of its configured address. (Claude Code's documentation, “Environment variables”.) */
const clouds: Record<string, string> = {
  CLAUDE_CODE_USE_BEDROCK: "Amazon Bedrock",
  CLAUDE_CODE_USE_MANTLE: "Amazon Bedrock",
  CLAUDE_CODE_USE_ANTHROPIC_AWS: "Claude on AWS",
  CLAUDE_CODE_USE_VERTEX: "Google Vertex AI",
  CLAUDE_CODE_USE_FOUNDRY: "Microsoft Foundry",
};

/** The cloud variables that an environment sets. */
export const cloudsIn = (env: unknown): { name: string; cloud: string }[] =>
  Object.entries(clouds)
    .map(([name, cloud]) => ({ name, cloud }))
    .filter(({ name }) => isSet(settingAt(env, [name])));

export const isSet = (value: unknown) => /^(?:1|true|yes|on)$/i.test(String(value).trim());

/** A proxy in the variables of a file, which the tool would use for this machine too. @param where `in it`, or a path. */
function proxied(variables: unknown, where: string, { url, env }: Look): Caveat[] {
  const named = isLoopbackUrl(url) && proxyOfLoopback({ ...env, ...(variables as Look["env"]) });
  if (!named || settingAt(variables, [named]) === undefined) return [];
  const { hostname } = new URL(url);
  return [overriding(`${named} ${where} sends its requests to a proxy: add ${hostname} to NO_PROXY there`)];
}

/** Variables of Claude Code that name a model in place of that of a class. */
export const modelVariables = ["CLAUDE_CODE_SUBAGENT_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"] as const;

/** Names of Claude Code for models, with the class that each means. */
export const claudeCodeAliases = {
  opus: "opus",
  best: "opus",
  opusplan: "opus",
  sonnet: "claude",
  haiku: "haiku",
  fable: "fable",
} as const;

const isOwnName = (name: unknown) =>
  name === undefined ||
  name === "inherit" ||
  Object.hasOwn(claudeCodeAliases, String(name)) ||
  /^claude-/.test(String(name));

export function claudeCodeCaveats(settings: Record<string, unknown>, look: Look, where = "in it"): Caveat[] {
  const { env, availableModels, modelOverrides, model } = settings;
  const models = modelVariables.map((name) => [name, settingAt(env, [name])]).filter(([, named]) => !isOwnName(named));
  // An entry may be a whole name or that of a class, such as `haiku`.
  const isAllowed = (name: string) => (availableModels as unknown[]).some((entry) => name.includes(String(entry)));
  const isLeftOut = Array.isArray(availableModels) && typeof model === "string" && !isAllowed(model);
  return [
    ...cloudsIn(env).map(({ name, cloud }) => overriding(`${name} ${where} makes Claude Code use ${cloud}`)),
    ...proxied(env, where, look),
    ...models.map(([name, named]) => partly(`${name} ${where} asks for ${named}`)),
    ...(isLeftOut ? [partly(`\`availableModels\` ${where} leaves ${model} out`)] : []),
    ...(modelOverrides === undefined ? [] : [partly(`\`modelOverrides\` ${where} gives models other names`)]),
  ];
}

/** The settings that an organization puts on a machine go before a person's. (Claude Code's documentation, “Settings”.) */
export function claudeCodeBeside({ env, platform = process.platform }: Surroundings): Beside[] {
  const folders: Partial<Record<NodeJS.Platform, string>> = {
    darwin: "/Library/Application Support/ClaudeCode",
    win32: join(env.ProgramFiles ?? "C:\\Program Files", "ClaudeCode"),
  };
  const path = join(folders[platform] ?? "/etc/claude-code", "managed-settings.json");
  const caveats: Beside["caveats"] = (settings, look) => {
    const address = settingAt(settings, ["env", "ANTHROPIC_BASE_URL"]);
    const elsewhere = address !== undefined && !look.isHere(address);
    return [
      ...(elsewhere ? [overriding(`ANTHROPIC_BASE_URL in ${path} goes before it and names ${String(address)}`)] : []),
      ...claudeCodeCaveats(settings, look, `in ${path}`),
    ];
  };
  return [{ path, format: "json", caveats }];
}

/** Codex adds the variables of this file to its own. (`load_dotenv` of codex-rs/arg0, 0.171.) @param folder The one of its settings file. */
export const codexBeside = (folder: string): Beside[] => [dotenvAt(join(folder, ".env"))];

const dotenvAt = (path: string): Beside => ({
  path,
  format: "env",
  caveats: (variables, look) => proxied(variables, `in ${path}`, look),
});

/** Gemini CLI, and Qwen Code which was made from it. @param own The sign-in that `connect` writes. */
export function geminiCaveats(settings: Record<string, unknown>, look: Look, where = "in it"): Caveat[] {
  const { env, security, proxy } = settings;
  const enforced = settingAt(security, ["auth", "enforcedType"]);
  const selected = settingAt(security, ["auth", "selectedType"]);
  const named = settingAt(env, ["GEMINI_MODEL"]);
  const isKept = enforced === undefined || selected === undefined || enforced === selected;
  return [
    ...(isKept ? [] : [overriding(`\`security.auth.enforcedType\` ${where} is ${JSON.stringify(enforced)}`)]),
    ...(typeof proxy === "string" && proxy !== ""
      ? [overriding(`\`proxy\` ${where} sends its requests to a proxy`)]
      : []),
    ...proxied(env, where === "in it" ? "in its variables" : where, look),
    ...(named === undefined ? [] : [partly(`GEMINI_MODEL in its .env goes before \`model.name\``)]),
  ];
}

/** Settings of the machine go before a person's. (Gemini CLI's documentation, “Enterprise”; Qwen Code's has the same.) */
export function geminiBeside(
  named: string,
  name: string,
  sign: string,
  { env, platform = process.platform }: Surroundings,
): Beside[] {
  const folders: Partial<Record<NodeJS.Platform, string>> = {
    darwin: `/Library/Application Support/${name === "gemini-cli" ? "GeminiCli" : "QwenCode"}`,
    win32: `C:\\ProgramData\\${name}`,
  };
  const path = env[named] ?? join(folders[platform] ?? `/etc/${name}`, "settings.json");
  const caveats: Beside["caveats"] = ({ security }) =>
    (["selectedType", "enforcedType"] as const).flatMap((kind) => {
      const type = settingAt(security, ["auth", kind]);
      return type === undefined || type === sign || sign === ""
        ? []
        : [overriding(`\`security.auth.${kind}\` in ${path} goes before it and is ${JSON.stringify(type)}`)];
    });
  return [{ path, format: "json", caveats }];
}

/** Lists of providers of opencode: what it leaves out is not there at all. (Its documentation, “Config”.) */
export function opencodeLists(settings: Record<string, unknown>, where = "its"): Caveat[] {
  const { enabled_providers: enabled, disabled_providers: disabled } = settings;
  const [left, put] = [Array.isArray(enabled) && !enabled.includes("dragoman"), includes(disabled, "dragoman")];
  return [
    ...(left ? [overriding(`${where} \`enabled_providers\` leaves dragoman out`)] : []),
    ...(put ? [overriding(`${where} \`disabled_providers\` names dragoman`)] : []),
  ];
}

const includes = (list: unknown, item: string) => Array.isArray(list) && list.includes(item);

/** A model of another provider, named as `provider/model`. @param at Where it stands. */
export function ofAnother(
  named: unknown,
  at: string,
  overrides: boolean,
  isOurs: (provider: string) => boolean,
): Caveat[] {
  if (typeof named !== "string" || isOurs(named.split("/")[0]!)) return [];
  return [{ says: `its \`${at}\` is ${named}, which belongs to another provider`, overrides }];
}

/** Where a setting is as said. */
export const where = (settings: unknown, path: Path, value: unknown, says: string): Caveat[] =>
  Bun.deepEquals(settingAt(settings, path), value) ? [overriding(says)] : [];
