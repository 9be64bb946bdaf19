/**
 * Bun reads some settings from the environment before our first line runs, so this process replaces itself
 * (execve), with the same id and the same standard streams. Windows has no such call: there they must be set from outside.
 */

/** By default Bun makes at most 256 calls at once and queues the others, including token exchanges. */
const limits: Settings = { BUN_CONFIG_MAX_HTTP_REQUESTS: "4096" };

/**
 * The compiler's last tier comes ten times later. With its own thresholds the executable compiles for 0.7 s of CPU in its
 * first 15,000 requests, more than the tier gains in the 35,000 requests after them. Streams run long enough to reach it.
 */
const compilerOptions: Settings = {
  BUN_JSC_thresholdForFTLOptimizeAfterWarmUp: "1000000",
  BUN_JSC_thresholdForFTLOptimizeSoon: "100000",
};

/** The versions of Bun with which these options were tested. Bun exits if it does not know an option. */
const triedVersions = ["1.4.5"];

type Settings = Readonly<Record<string, string>>;

const compilerOptionsOf = (version: string): Settings => (triedVersions.includes(version) ? compilerOptions : {});

/** The settings with which this version of Bun runs dragoman. */
export const settingsOf = (version: string): Settings => ({ ...limits, ...compilerOptionsOf(version) });

/** Returns only if all settings are present or the process cannot replace itself. Values that the owner has set are kept. */
export function startAgainWithSettings(version: string = Bun.version): void {
  if (process.platform === "win32" || !process.execve) return;
  const missing = Object.entries(settingsOf(version)).filter(([name]) => !process.env[name]);
  if (missing.length === 0) {
    forget(compilerOptionsOf(version));
    return;
  }
  const inside = Bun.isStandaloneExecutable;
  const rest = inside ? process.argv.slice(2) : [...process.execArgv, Bun.main, ...process.argv.slice(2)];
  // The name that process lists show.
  process.execve(process.execPath, [inside ? "dragoman" : "bun", ...rest], {
    ...(process.env as Record<string, string>),
    ...Object.fromEntries(missing),
  });
}

/** Removes the settings from the environment: a child process may be another version of Bun, which would not know them. */
function forget(options: Settings): void {
  for (const [name, value] of Object.entries(options)) if (process.env[name] === value) delete process.env[name];
}
