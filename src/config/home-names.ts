/**
 * The names of all that dragoman keeps in its data folder. Whoever writes there takes the path from this table, so that what is
 * not in it is somebody else's.
 */
import { join } from "node:path";

const files = {
  accounts: "accounts",
  budgets: "budgets.sqlite",
  config: "config.json",
  connect: "connect",
  demo: "demo",
  demoTeam: "demo-team",
  history: "admin.sqlite",
  keptKeys: "kept-keys.json",
  logins: "logins.json",
  members: "members.sqlite",
  notices: "notices.json",
  running: "running.json",
  sealKey: "seal.key",
  serviceLog: "service.log",
  serviceVariables: "service.env",
  updateCheck: "update-check.json",
  waiting: "waiting.sqlite",
} as const;

type HomeName = keyof typeof files;

/** @param inside Joins paths, of another platform in tests. */
export const inHome = (home: string, what: HomeName, inside: typeof join = join): string => inside(home, files[what]);

/** SQLite, locks, marks and temporary files add to these names. */
const own = new RegExp(`^(?:${Object.values(files).map(RegExp.escape).join("|")})(?:$|[.-])`);

export const isOwnName = (name: string): boolean => own.test(name);
