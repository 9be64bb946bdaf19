/** What runs here, and on what. */
import { engines } from "../../../package.json";
import { about, type CheckContext, type Finding } from "./check";

export function checkProgram({ version, env }: CheckContext): Finding[] {
  const program = about("program");
  const form = Bun.isStandaloneExecutable ? "an executable with Bun" : "Bun";
  const told = `dragoman ${version}, ${form} ${Bun.version}, ${process.platform} ${process.arch}`;
  if (!Bun.semver.satisfies(Bun.version, engines.bun))
    return [program.fail(`${told}: Bun ${engines.bun} is needed.`, "Run: bun upgrade")];
  // Elsewhere the program sees to it itself.
  if (process.platform === "win32" && !env.BUN_CONFIG_MAX_HTTP_REQUESTS)
    return [
      program.warn(
        `${told}: more than 256 calls at once wait for one another.`,
        "Set BUN_CONFIG_MAX_HTTP_REQUESTS to 4096 where dragoman starts.",
      ),
    ];
  return [program.ok(`${told}.`)];
}
