import { type DemoAccount, quotas } from "../../src/demo/accounts";

const autoPool = ["gpt-5-mini", "claude-haiku-4.5"];

type AutoAccount = DemoAccount & Required<Pick<DemoAccount, "auto">>;
const account = (name: string, sku: string, auto: AutoAccount["auto"]): AutoAccount => ({
  login: `${name}-demo`,
  githubToken: `ghu_DEMO${name.padEnd(32, "0")}`,
  ...{ plan: "individual", sku, host: "individual", quota: quotas.pro(), auto },
});

/** Accounts with Auto: on the plans Free and Student there is nothing else, on Pro it stands beside the named models. */
export const autoAccounts = (): Record<"free" | "student" | "pro", AutoAccount> => ({
  free: {
    ...account("free", "free_limited_copilot", { only: true, protocols: ["omission"], pool: autoPool }),
    ...{ plan: "free", quota: quotas.free() },
  },
  student: account("student", "free_educational_quota", {
    ...{ only: true, protocols: ["auto", "session", "omission"], pool: [...autoPool, "gpt-5.4-mini"] },
  }),
  pro: account("pro", "monthly_subscriber_quota", {
    ...{ protocols: ["auto"], pool: ["claude-sonnet-4.6", "gpt-5-mini"], discount: 10 },
  }),
});
