/** The demo's accounts, with their plans and quotas. Tests change them while the demo runs. */

export type HostName = "individual" | "business";

/** One counter. `remaining` may be negative; `creditsUsed` is counted under token billing only. */
export interface Allowance {
  entitlement: number;
  remaining: number;
  unlimited: boolean;
  overagePermitted: boolean;
  overageCount: number;
  creditsUsed?: number;
  /** As stated under token billing; a pool that is used up says false although it is unlimited. True by default. */
  hasQuota?: boolean;
}

interface Quota {
  premium: Allowance;
  chat: Allowance;
  completions: Allowance;
  /** Billed by tokens: with entitlement 0, the numbers of `premium` are placeholders and do not mean "exhausted". */
  tokenBilling: boolean;
  /** The old free plan: no `quota_snapshots`, `limited_user_quotas` instead. */
  legacy: boolean;
}

/** Who offers a protocol: `POST /auto`, `POST /models/session`, or a chat request that names no model. */
export type AutoProtocol = "auto" | "session" | "omission";

export interface AutoOffer {
  /** The plan has nothing else: the list picks no model, and a named one is refused. */
  only?: boolean;
  protocols: AutoProtocol[];
  /** The list picks no model though named ones are served. */
  unpicked?: boolean;
  /** The tiers of `POST /auto`; all of them. */
  tiers?: string[];
  /** `GET /meta` is not there. */
  hasNoMeta?: boolean;
  /** For how many turns of the person a choice stands; without it, for the conversation. */
  plan?: { skip: number; isForgotten?: boolean };
  /** The ids that it chooses from. Each choice takes the next one; one for an image takes the next that sees. */
  pool: string[];
  /** Percent. */
  discount?: number;
  /** Seconds; a day. */
  lifetime?: number;
  /** Instead of a choice: 503, silence, or a page that is no JSON. */
  fault?: "later" | "silent" | "unreadable";
  /** Choices so far. */
  made?: number;
}

export interface DemoAccount {
  login: string;
  /** `ghu_…` is exchanged for a Copilot token; `gho_…` is itself the bearer token on the model host; `ghs_…` is either. */
  githubToken: string;
  /** A fine-grained token of the person that may read the plan. A sign-in may not. */
  planToken?: string;
  /** free, individual, individual_pro, business, enterprise */
  plan: string;
  sku: string;
  host: HostName;
  quota: Quota;
  /** The ids that this account sees; if missing, all that its plan allows. */
  models?: string[];
  /** Seconds; 1800. */
  tokenLifetime?: number;
  /** Seconds; 1500. */
  refreshIn?: number;
  /** What Auto offers it; nothing if missing. */
  auto?: AutoOffer;
}

const counter = (entitlement: number, remaining = entitlement, more: Partial<Allowance> = {}): Allowance => ({
  entitlement,
  remaining,
  unlimited: false,
  overagePermitted: false,
  overageCount: 0,
  ...more,
});
const unlimited = () => counter(0, 0, { unlimited: true });
const paid = (premium: Allowance, tokenBilling = false): Quota => ({
  premium,
  chat: unlimited(),
  completions: unlimited(),
  tokenBilling,
  legacy: false,
});

/** Every known form of the quota endpoint's answer. */
export const quotas = {
  pro: () => paid(counter(300, 217.34)),
  proPlus: () => paid(counter(1500, 1204)),
  exhausted: () => paid(counter(300, 0)),
  overdrawn: () => paid(counter(300, -1)),
  overage: () => paid(counter(300, 0, { overagePermitted: true, overageCount: 12.5 })),
  unlimited: () => paid(unlimited()),
  tokenBilling: () => paid(counter(0, 0, { creditsUsed: 0 }), true),
  pooledOut: () => paid(counter(0, 0, { unlimited: true, creditsUsed: 812.5, hasQuota: false }), true),
  credits: () => paid(counter(1500, 1100, { creditsUsed: 400 }), true),
  free: (): Quota => ({
    premium: counter(50),
    chat: counter(200, 180),
    completions: counter(2000),
    tokenBilling: false,
    legacy: false,
  }),
  freeLegacy: (): Quota => ({
    premium: counter(0),
    chat: counter(500, 450),
    completions: counter(4000),
    tokenBilling: false,
    legacy: true,
  }),
} satisfies Record<string, () => Quota>;

/** The three accounts of `start --demo`: new objects each time, because quotas change. */
export const demoAccounts = (): DemoAccount[] => [
  {
    login: "octo-demo",
    githubToken: "ghu_DEMOoctoDEMOoctoDEMOoctoDEMOocto0001",
    planToken: "github_pat_DEMOocto0001",
    plan: "individual",
    sku: "monthly_subscriber_quota",
    host: "individual",
    quota: quotas.pro(),
  },
  {
    login: "work-demo",
    githubToken: "ghu_DEMOworkDEMOworkDEMOworkDEMOwork0002",
    planToken: "github_pat_DEMOwork0002",
    plan: "business",
    sku: "copilot_for_business_seat_quota",
    host: "business",
    quota: quotas.unlimited(),
  },
  {
    login: "plus-demo",
    githubToken: "gho_DEMOplusDEMOplusDEMOplusDEMOplus0003",
    planToken: "github_pat_DEMOplus0003",
    plan: "individual_pro",
    sku: "plus_monthly_subscriber_quota",
    host: "individual",
    quota: quotas.proPlus(),
  },
];

const plus = { plan: "individual_pro", sku: "plus_monthly_subscriber_quota", host: "individual" } as const;
const credits = () => paid(counter(7_000, 7_000, { creditsUsed: 0 }), true);

/**
 * The same accounts as GitHub bills them since June 2026, in AI credits of which Pro+ has 7,000 a month.
 * @see https://github.com/features/copilot#pricing, read in October 2026
 */
export function creditAccounts(): DemoAccount[] {
  const [octo, work, other] = demoAccounts() as [DemoAccount, DemoAccount, DemoAccount];
  return [
    { ...octo, ...plus, quota: credits() },
    { ...work, quota: paid(unlimited(), true) },
    { ...other, quota: credits() },
  ];
}

/** Guests sign in while the demo runs, members have before. */
export type TeamNames = Record<"guests" | "members", readonly string[]>;

/** The owner's and those of a team's people: the guests' come first, as sign-ins take them in turn. */
export function teamAccounts({ guests, members }: TeamNames): DemoAccount[] {
  const of = (name: string): DemoAccount => {
    const githubToken = `ghu_DEMO${name}`.padEnd(40, "0");
    return { login: `${name}-demo`, githubToken, ...plus, quota: credits() };
  };
  return [...guests.map(of), ...creditAccounts(), ...members.map(of)];
}

/** The next first of a month, 00:00 UTC: when every quota starts again. */
export function resetDate(now: number): Date {
  const date = new Date(now);
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1));
}
