/**
 * Bun makes at most 256 calls at once and quietly queues the others, a token exchange among them. The limit is read from
 * the environment before our first line runs, so this process starts itself again in its own place, with the same id
 * and the same standard streams. Windows has no such call: there the variable must be set from outside.
 */
export function liftParallelLimit(): void {
  if (process.env.BUN_CONFIG_MAX_HTTP_REQUESTS || process.platform === "win32" || !process.execve) return;
  process.env.BUN_CONFIG_MAX_HTTP_REQUESTS = "4096";
  const inside = Bun.isStandaloneExecutable;
  const rest = inside ? process.argv.slice(2) : [...process.execArgv, Bun.main, ...process.argv.slice(2)];
  // The name that process lists show.
  process.execve(process.execPath, [inside ? "dragoman" : "bun", ...rest], process.env as Record<string, string>);
}
