/** Locates the settings file of each client: by its environment variables, or at the default path. */
import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";

/** The environment of the person whose files are located. */
export interface Surroundings {
  /** The home folder. */
  home: string;
  env: Record<string, string | undefined>;
  platform?: NodeJS.Platform;
}

/** The folder that a variable names, or the default. */
const folder =
  (variable: string, ...usual: string[]) =>
  ({ home, env }: Surroundings) => {
    const named = env[variable]?.trim();
    return named && isAbsolute(named) ? named : join(home, ...usual);
  };

const configHome = folder("XDG_CONFIG_HOME", ".config");
/** Where desktop apps made with Electron keep their data. */
function appData(around: Surroundings): string {
  const { home, env, platform = process.platform } = around;
  if (platform === "win32") return env.APPDATA ?? join(home, "AppData", "Roaming");
  return platform === "darwin" ? join(home, "Library", "Application Support") : configHome(around);
}

/** Of the Insiders edition if only that is there. */
function vscode(around: Surroundings): string {
  const places = ["Code", "Code - Insiders"].map((name) => join(appData(around), name, "User"));
  return places.find((place) => existsSync(place)) ?? places[0]!;
}

const claude = folder("CLAUDE_CONFIG_DIR", ".claude");
const codex = folder("CODEX_HOME", ".codex");
const gemini = ({ home, env }: Surroundings) => join(folder("GEMINI_CLI_HOME")({ home, env }), ".gemini");
const qwen = folder("QWEN_HOME", ".qwen");
const pi = folder("PI_CODING_AGENT_DIR", ".pi", "agent");

/** The name of a profile may have letters, digits, - and _. */
export const codexProfile = (project: string) => project.replace(/[^\w-]/g, "-");

export const locations = {
  "claude-code": (around: Surroundings) => join(claude(around), "settings.json"),
  "claude-code project": (_: Surroundings, folder: string) => join(folder, ".claude", "settings.local.json"),
  codex: (around: Surroundings) => join(codex(around), "config.toml"),
  /** A profile: in the files of a project, Codex ignores what concerns providers (0.130 and later). */
  "codex project": (around: Surroundings, _: string, name: string) =>
    join(codex(around), `${codexProfile(name)}.config.toml`),
  /** If there are several files, the first is the one that the client itself would change. */
  opencode: (around: Surroundings) => {
    const named = around.env.OPENCODE_CONFIG?.trim();
    if (named && isAbsolute(named)) return named;
    const places = ["opencode.jsonc", "opencode.json", "config.json"].map((name) =>
      join(configHome(around), "opencode", name),
    );
    return places.find((place) => existsSync(place)) ?? places[1]!;
  },
  "opencode project": (_: Surroundings, folder: string) => {
    const places = ["opencode.jsonc", "opencode.json"].map((name) => join(folder, name));
    return places.find((place) => existsSync(place)) ?? places[1]!;
  },
  "gemini-cli": (around: Surroundings) => join(gemini(around), "settings.json"),
  "gemini-cli variables": (around: Surroundings) => join(gemini(around), ".env"),
  vscode: (around: Surroundings) => join(vscode(around), "chatLanguageModels.json"),
  "vscode settings": (around: Surroundings) => join(vscode(around), "settings.json"),
  cline: ({ home }: Surroundings) => join(home, ".cline", "data", "settings", "providers.json"),
  zed: (around: Surroundings) => {
    const { env, platform = process.platform } = around;
    if (platform === "win32" && env.APPDATA) return join(env.APPDATA, "Zed", "settings.json");
    return join(platform === "darwin" ? join(around.home, ".config") : configHome(around), "zed", "settings.json");
  },
  /** CRUSH_GLOBAL_CONFIG names the folder. */
  crush: (around: Surroundings) => {
    const { env, platform = process.platform } = around;
    const usual =
      platform === "win32" && env.LOCALAPPDATA ? join(env.LOCALAPPDATA, "crush") : join(configHome(around), "crush");
    const named = env.CRUSH_GLOBAL_CONFIG?.trim();
    return join(named && isAbsolute(named) ? named : usual, "crush.json");
  },
  "qwen-code": (around: Surroundings) => join(qwen(around), "settings.json"),
  pi: (around: Surroundings) => join(pi(around), "models.json"),
} satisfies Record<string, (around: Surroundings, folder: string, name: string) => string>;
