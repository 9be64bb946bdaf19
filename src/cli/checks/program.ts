/** The version of dragoman and of Bun, and the platform. */
import { engines } from "../../../package.json";
import { about, type CheckContext, type Finding } from "./check";

export function checkProgram({ version, env }: CheckContext): Finding[] {
  const program = about("program");
  const form = Bun.isStandaloneExecutable ? "an executable with Bun" : "Bun";
  const summary = `dragoman ${version}, ${form} ${Bun.version}, ${process.platform} ${process.arch}`;
  if (!Bun.semver.satisfies(Bun.version, engines.bun))
    return [program.fail(`${summary}: Bun ${engines.bun} is required.`, "Run: bun upgrade")];
  // On other systems `launch.ts` sets it.
  if (process.platform === "win32" && !env.BUN_CONFIG_MAX_HTTP_REQUESTS)
    return [
      program.warn(
        `${summary}: at most 256 upstream calls can run at once.`,
        "Set BUN_CONFIG_MAX_HTTP_REQUESTS=4096 before you start dragoman.",
      ),
    ];
  return [program.ok(`${summary}.`)];
}
