/** How a tool is started with dragoman's settings for one process: nothing is written into its own files. */
import { type ClientSetup, noKey, variablesBeside } from "./client";
import { withEdits } from "./formats";
import { type ClientId, clientOf } from "./index";

interface Launch {
  /** The program and its first arguments. No argument holds the key: others on the machine can read them. */
  command: string[];
  env: Record<string, string>;
}

/** @param file Writes a file that is there as long as the process; returns its path. */
type Launcher = (setup: ClientSetup, file: (name: string, text: string) => string, key: string) => Launch;

/** The settings as a record, for tools that take a whole file or text. */
const settingsOf = ({ edits }: ClientSetup) => withEdits({}, edits);

const keyVariable = "DRAGOMAN_API_KEY";

const launchers: Partial<Record<ClientId, Launcher>> = {
  // The settings of its own file go before variables, and those of this option before that file.
  "claude-code": (setup, file) => {
    // A variable of the person's own file would go before the setting.
    const model = { path: ["env", "ANTHROPIC_MODEL"], value: setup.variables.ANTHROPIC_MODEL };
    const settings = JSON.stringify(withEdits(settingsOf(setup), [model]));
    return { command: ["claude", "--settings", file("settings.json", settings)], env: {} };
  },
  codex: (setup, _, key) => {
    const { experimental_bearer_token: _key, ...provider } = setup.edits.find(
      ({ path }) => path[0] === "model_providers",
    )!.value as Record<string, unknown>;
    const edits = setup.edits.filter(({ path }) => path[0] !== "model_providers");
    const options = [
      ...edits.map(({ path, value }) => `${path.join(".")}=${JSON.stringify(value)}`),
      ...Object.entries({ ...provider, env_key: keyVariable }).map(
        ([name, value]) => `model_providers.dragoman.${name}=${JSON.stringify(value)}`,
      ),
    ];
    return { command: ["codex", ...options.flatMap((option) => ["-c", option])], env: { [keyVariable]: key } };
  },
  opencode: (setup) => ({
    command: ["opencode"],
    env: { OPENCODE_CONFIG_CONTENT: JSON.stringify(settingsOf(setup)) },
  }),
  // Its system settings go before those of the person.
  "gemini-cli": (setup, file) => {
    const { env: _, ...settings } = settingsOf(setup);
    const path = file("settings.json", JSON.stringify(settings));
    return { command: ["gemini"], env: { ...setup.variables, GEMINI_CLI_SYSTEM_SETTINGS_PATH: path } };
  },
};

/** Its name at npm, as of 29 November 2026; undefined for a tool that is installed otherwise. */
export const packageOf = (id: ClientId): string | undefined => packages[id];
const packages: Partial<Record<ClientId, string>> = {
  "claude-code": "@anthropic-ai/claude-code",
  codex: "@openai/codex",
  opencode: "opencode-ai",
  "gemini-cli": "@google/gemini-cli",
  "copilot-cli": "@github/copilot",
};

/** Whether a tool takes its settings from anywhere but its own file. */
export const isLaunchable = (id: ClientId): boolean => launchers[id] !== undefined || !clientOf(id).file;

/** @param id Of a tool that is launchable. @returns Undefined for one that has no command. */
export function launchOf(
  id: ClientId,
  setup: ClientSetup,
  { key = noKey, file }: { key?: string; file: Parameters<Launcher>[1] },
): Launch | undefined {
  const launcher = launchers[id];
  if (launcher) return launcher(setup, file, key);
  const isOfVariables = setup.command && variablesBeside(setup).length > 0;
  return isOfVariables ? { command: setup.command!.split(" "), env: setup.variables } : undefined;
}
