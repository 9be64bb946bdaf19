/** The commands of the service, as the command line has them. */
import type { CAC } from "cac";
import type { Given } from "../given";
import { UsageError } from "../usage-error";

/** Options of `start` that make no sense for a service: they tie it to a terminal or a parent, or would store a token. */
const notForServices = /^--(?:json|idp-token|github-token|stdin-lifetime|parent-pid|log-file)\b/;
/** The options of `service install` itself. */
const ownOptions = new Set(["--yes", "-y", "--print"]);

interface ServiceFlags {
  yes?: boolean;
  print?: boolean;
  demo?: boolean;
}

/**
 * @param argv The words of the command line.
 * @param checkStart Reads the options of `start` as `start` would. @throws UsageError
 */
export function addService(
  cli: CAC,
  { environment }: Given,
  argv: readonly string[],
  checkStart: (options: ServiceFlags) => { port: number; drainMs?: number },
): void {
  const install = cli.command(
    "service install",
    "Run dragoman in the background: start it now, at every log in, and after a crash",
  );
  install.option("-y, --yes", "Do not ask").option("--print", "Show the service's files, and do nothing else");
  const start = cli.commands.find(({ name }) => name === "start");
  for (const { rawName, description, config } of start?.options ?? [])
    if (!notForServices.test(rawName)) install.option(rawName, description, config);
  install.action(async (flags: ServiceFlags) => {
    const { port, drainMs } = checkStart(flags);
    if (port === 0) throw new UsageError("A service needs a port of its own: --port must not be 0.");
    const { serviceInstall } = await import("./service");
    return serviceInstall({
      environment: environment(),
      port,
      drainMs,
      demo: flags.demo === true,
      startArguments: argv.slice(2).filter((word) => !ownOptions.has(word)),
      yes: flags.yes === true,
      print: flags.print === true,
    });
  });
  cli
    .command("service uninstall", "Stop the service and remove it; config, accounts and history stay")
    .option("-y, --yes", "Do not ask")
    .action(async (flags: ServiceFlags) => {
      const { serviceUninstall } = await import("./service");
      return serviceUninstall({ environment: environment(), yes: flags.yes === true });
    });
  cli
    .command("service status", "Show whether the service is installed, running and ready")
    .option("--json", "Print one JSON object")
    .action(async (flags: { json?: boolean }) => {
      const { serviceStatus } = await import("./service");
      return serviceStatus({ environment: environment(), json: flags.json === true });
    });
  cli
    .command("service logs", "Show the log of the service")
    .option("-n, --lines <number>", "How many lines", { default: 100 })
    .option("-f, --follow", "Wait for further lines")
    .action(async (flags: { lines: unknown; follow?: boolean }) => {
      const { serviceLogs } = await import("./service");
      return serviceLogs({
        environment: environment(),
        lines: linesFrom(flags.lines),
        follow: flags.follow === true,
      });
    });
}

function linesFrom(given: unknown): number {
  if (Number.isSafeInteger(given) && Number(given) >= 1 && Number(given) <= 100_000) return Number(given);
  throw new UsageError("--lines must be a whole number from 1 to 100000.");
}
