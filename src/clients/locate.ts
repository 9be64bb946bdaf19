/** Where each client keeps its settings: the variables that move them, and the usual place. */
import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";

/** Whose files are meant. */
export interface Surroundings {
  /** The person's own folder. */
  home: string;
  env: Record<string, string | undefined>;
  platform?: NodeJS.Platform;
}

/** The folder that a variable names, where it does, or the usual one. */
const folder =
  (variable: string, ...usual: string[]) =>
  ({ home, env }: Surroundings) => {
    const named = env[variable]?.trim();
    return named && isAbsolute(named) ? named : join(home, ...usual);
  };

const configHome = folder("XDG_CONFIG_HOME", ".config");
const claude = folder("CLAUDE_CONFIG_DIR", ".claude");
const codex = folder("CODEX_HOME", ".codex");
const continued = folder("CONTINUE_GLOBAL_DIR", ".continue");
const pi = folder("PI_CODING_AGENT_DIR", ".pi", "agent");

export const locations = {
  "claude-code": (around: Surroundings) => join(claude(around), "settings.json"),
  codex: (around: Surroundings) => join(codex(around), "config.toml"),
  /** Of several the first is what the client itself would change. */
  opencode: (around: Surroundings) => {
    const named = around.env.OPENCODE_CONFIG?.trim();
    if (named && isAbsolute(named)) return named;
    const places = ["opencode.jsonc", "opencode.json", "config.json"].map((name) =>
      join(configHome(around), "opencode", name),
    );
    return places.find((place) => existsSync(place)) ?? places[1]!;
  },
  cline: ({ home }: Surroundings) => join(home, ".cline", "data", "settings", "providers.json"),
  continue: (around: Surroundings) => join(continued(around), "config.yaml"),
  zed: (around: Surroundings) => {
    const { env, platform = process.platform } = around;
    if (platform === "win32" && env.APPDATA) return join(env.APPDATA, "Zed", "settings.json");
    return join(platform === "darwin" ? join(around.home, ".config") : configHome(around), "zed", "settings.json");
  },
  aider: ({ home }: Surroundings) => join(home, ".aider.conf.yml"),
  pi: (around: Surroundings) => join(pi(around), "models.json"),
} satisfies Record<string, (around: Surroundings) => string>;
