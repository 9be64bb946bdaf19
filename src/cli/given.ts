/** The options of the command line and the environment, as the commands read them. */
import { parseArgs } from "node:util";
import { type SignInApp, signInApp } from "../accounts/hosts";
import { checkEnterpriseHost, type Environment, readEnvironment } from "../config/environment";
import { ProxyError } from "../errors";
import { UsageError } from "./usage-error";

/** Options whose text must be kept as typed: cac would read `0123` as a number. */
const textOptions = {
  port: { type: "string" },
  "parent-pid": { type: "string" },
  budget: { type: "string" },
  compare: { type: "string" },
  host: { type: "string" },
  account: { type: "string" },
  "admin-auth": { type: "string" },
  client: { type: "string" },
  each: { type: "string" },
  key: { type: "string" },
  limit: { type: "string" },
  "limit-of": { type: "string" },
  member: { type: "string" },
  name: { type: "string" },
  per: { type: "string" },
  then: { type: "string" },
  unit: { type: "string" },
  "trust-proxy": { type: "string" },
  model: { type: "string" },
  models: { type: "string" },
  expires: { type: "string" },
  format: { type: "string" },
  shell: { type: "string" },
  "idp-token": { type: "string" },
  "github-token": { type: "string" },
  "enterprise-url": { type: "string" },
  "oauth-app": { type: "string" },
  drain: { type: "string" },
  "log-format": { type: "string" },
  "log-file": { type: "string" },
  to: { type: "string" },
  url: { type: "string" },
} as const;

/** The options and the environment, read when a command runs. @throws UsageError */
export interface Given {
  version: string;
  /** The value of an option, as it was typed. */
  text(name: keyof typeof textOptions): string | undefined;
  environment(): Environment;
  enterprise(from: Environment): string | undefined;
  signInWith(from: Environment): { app: SignInApp; enterpriseHost?: string };
}

export function givenIn(argv: string[], version: string): Given {
  const raw = parseArgs({ args: argv, strict: false, options: textOptions }).values;
  const text: Given["text"] = (name) => {
    const value = raw[name];
    // An empty value is often a variable that is not set. Taken for "no value", it would lift a limit unnoticed.
    if (typeof value === "string" && value.trim() === "")
      throw new UsageError(`--${name} is empty: give it a value, or leave it out.`);
    if (value === undefined || typeof value === "string") return value;
    throw new UsageError(`--${name} needs a value.`);
  };
  const enterprise: Given["enterprise"] = (from) =>
    asUsage(() => enterpriseHost(text("enterprise-url"))) ?? from.enterpriseHost;
  return {
    version,
    text,
    environment: () => asUsage(() => readEnvironment(process.env)),
    enterprise,
    signInWith(from) {
      const host = enterprise(from);
      return { app: asUsage(() => signInApp(text("oauth-app") ?? from.oauthApp, host)), enterpriseHost: host };
    },
  };
}

const enterpriseHost = (given: string | undefined) =>
  given === undefined ? undefined : checkEnterpriseHost("--enterprise-url", given);

function asUsage<T>(read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    throw thrown instanceof ProxyError ? new UsageError(thrown.message) : thrown;
  }
}

/** The file of `--report`. @throws UsageError if it is empty */
export function fileFrom(given: unknown): string | true | undefined {
  if (given === undefined || given === true) return given;
  const file = String(given);
  // cac reads an empty text as 0.
  if (given === 0 || file.trim() === "") throw new UsageError("--report is empty: name a file, or leave the name out.");
  return file;
}
