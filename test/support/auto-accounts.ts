import { type DemoAccount, quotas } from "../../src/demo/accounts";

const autoPool = ["gpt-5-mini", "claude-haiku-4.5"];

/** Accounts with Auto: on the plans Free and Student there is nothing else, on Pro it stands beside the named models. */
export const autoAccounts = () =>
  ({
    free: {
      login: "free-demo",
      githubToken: "ghu_DEMOfreeDEMOfreeDEMOfreeDEMOfree0004",
      plan: "free",
      sku: "free_limited_copilot",
      host: "individual",
      quota: quotas.free(),
      auto: { only: true, protocols: ["omission"], pool: autoPool },
    },
    student: {
      login: "student-demo",
      githubToken: "ghu_DEMOstudDEMOstudDEMOstudDEMOstud0005",
      plan: "individual",
      sku: "free_educational_quota",
      host: "individual",
      quota: quotas.pro(),
      auto: { only: true, protocols: ["auto", "session", "omission"], pool: [...autoPool, "gpt-5.4-mini"] },
    },
    pro: {
      login: "pro-demo",
      githubToken: "ghu_DEMOprodDEMOprodDEMOprodDEMOprod0006",
      plan: "individual",
      sku: "monthly_subscriber_quota",
      host: "individual",
      quota: quotas.pro(),
      auto: { protocols: ["auto"], pool: ["claude-sonnet-4.6", "gpt-5-mini"], discount: 10 },
    },
  }) satisfies Record<string, DemoAccount>;
