/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The model catalogue: capabilities, limits, prices and the accounts that offer each model. */
import { asProxyError } from "../../../lib/errors";
import { compact, moment, plural, priceInWords, shorten, significant } from "../../../lib/format";
import { othersFirst } from "../../../lib/net/others-first";
import { Turns } from "../../../lib/turns";
import { haveOnlyAuto } from "../../../proxy/relay/target";
import { type ModelItem, modelItems, modelsAllowed } from "../../api/models";
import { Sentence, Unknown, Value } from "../../ui/format";
import type { Child, Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { requestsPath, withQuery } from "../../ui/links";
import { Empty, Picker, Table, Tabs } from "../../ui/lists";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";

/** A list takes some 12 ms to render. Several that are asked for at once come one by one, and requests of others in between. */
const rendering = new Turns(1);

export function modelsPage({ app, frame, member, url }: PageContext): StreamedPage {
  const now = app.now();
  const accounts = app.accounts.length;
  const isOwner = member === null;
  const allowed = modelsAllowed(app);
  const asked = url.searchParams.get("sort") ?? "";
  const sort = Object.hasOwn(orders, asked) ? asked : "vendor";
  return {
    page: (
      <Page frame={frame} title="Models" current="/admin/models">
        <p class="lead">
          The models of your accounts{isOwner && " and of other providers"}. Prices are in AI credits for a million (M)
          tokens; one credit is one US cent. Every model can be used by every API.
        </p>
        {haveOnlyAuto(app) && !app.config.current.autoWhenOnly && (
          <p class="note">
            The plan of your accounts offers Auto only. Ask for the model <code>auto</code>: GitHub Copilot chooses a
            model for each conversation, and refuses the others by name.
          </p>
        )}
        {allowed && (
          <p class="note">
            The owner allows your keys <Value of={allowed.join(", ")} max={400} />; other models are not listed.
          </p>
        )}
        {slot}
      </Page>
    ),
    parts: [
      () =>
        modelItems(app).then(
          (models) =>
            rendering.run(async () => {
              await othersFirst();
              return (
                <>
                  <Unlisted of={app.providers.names()} models={models} />
                  <Catalogue models={models} sort={sort} accounts={accounts} now={now} />
                </>
              );
            }),
          (thrown) => <NoList error={thrown} />,
        ),
    ],
  };
}

const NoList = ({ error }: { error: unknown }) => (
  <Empty title="The model list is unavailable" link={["/admin/accounts", "View accounts"]}>
    <Sentence of={asProxyError(error).written} />
  </Empty>
);

/** The providers without a list, whose models can still be used by name. */
function Unlisted({ of, models }: { of: string[]; models: ModelItem[] }): Markup {
  const missing = of.filter((name) => !models.some(({ provider }) => provider === name));
  return (
    <>
      {missing.map((name) => (
        <p class="note info">
          The model list of the provider <code>{name}</code> is unavailable. Its models can be used as{" "}
          <code>{name}/…</code>; <code>models</code> in its config lists them here.
        </p>
      ))}
    </>
  );
}

/** How the models can be ordered: the smallest number is first, and what has none is last. */
const orders: Record<string, { label: string; of?(model: ModelItem): number | null }> = {
  vendor: { label: "By vendor" },
  price: {
    label: "Cheapest first",
    of: ({ price: { tokens, units } }) => (tokens?.output != null ? tokens.output / tokens.per : units),
  },
  context: { label: "Longest context first", of: ({ limits }) => limits.context && -limits.context },
};

/** Tables with their headings: one for each vendor, or one for all. */
function tablesOf(models: ModelItem[], sort: string): Map<string, ModelItem[]> {
  const { label, of } = orders[sort]!;
  // GitHub names a model's host as its vendor.
  if (!of) return Map.groupBy(models, ({ vendor }) => vendor.replace(/^Azure (?=OpenAI)/, ""));
  const place = (model: ModelItem) => of(model) ?? Number.POSITIVE_INFINITY;
  return new Map([[label, models.toSorted((one, other) => place(one) - place(other) || 0)]]);
}

interface CatalogueProps {
  models: ModelItem[];
  /** The name of their order. */
  sort: string;
  /** Number of accounts. */
  accounts: number;
  now: number;
}

function Catalogue({ models, sort, accounts, now }: CatalogueProps): Markup {
  if (models.length === 0)
    return <Empty title="No models available">The upstream lists no models for your accounts.</Empty>;
  const vendors = new Set(tablesOf(models, "vendor").keys());
  const off = models.filter(({ enabled }) => !enabled);
  return (
    <>
      <div class="strip">
        <Picker label="Find a model" among=".models tbody tr" placeholder="opus, mini, ollama/ …" />
        <Tabs
          label="Order"
          items={Object.entries(orders).map(([name, { label }]) => [name, label])}
          chosen={sort}
          pathOf={(name) => withQuery("/admin/models", { sort: name === "vendor" ? undefined : name })}
        />
        <p class="soft">
          {plural(models.length, "model")} from {plural(vendors.size, "vendor")}
          {off.length > 0 && `, ${off.length} not enabled`}
        </p>
      </div>
      {[...tablesOf(models, sort)].map(([vendor, ofVendor]) => (
        <section class="vendor" data-hides-empty="" aria-labelledby={`of-${vendor.replace(/\W+/g, "-")}`}>
          <h2 id={`of-${vendor.replace(/\W+/g, "-")}`}>
            <Value of={vendor} />{" "}
            {sort === "vendor" && ofVendor[0]?.provider != null && <span class="badge idle">provider</span>}
          </h2>
          <ModelTable vendor={vendor} models={ofVendor} all={accounts} now={now} />
        </section>
      ))}
    </>
  );
}

interface TableProps {
  vendor: string;
  models: ModelItem[];
  /** Number of accounts. */
  all: number;
  now: number;
}

const ModelTable = ({ vendor, models, all, now }: TableProps) => (
  <Table
    class="rows labelled models"
    caption={`Models of ${vendor}`}
    rows={models}
    isOff={({ enabled }) => !enabled}
    columns={[
      ["Model", (model) => <ModelName model={model} now={now} />],
      ["Context, output", (model) => <LimitsOf model={model} />],
      [
        "Endpoints",
        ({ endpoints }) =>
          endpoints.length === 0 ? <Unknown /> : endpoints.map((endpoint) => <code class="endpoint">{endpoint}</code>),
      ],
      ["Capabilities", (model) => <AbilitiesOf model={model} />],
      ["Price", (model) => <PriceOf model={model} now={now} />],
      all > 1 && ["Accounts", (model) => accountsOf(model, all)],
    ]}
  />
);

interface ModelProps {
  model: ModelItem;
  now: number;
}

const ModelName = ({ model, now }: ModelProps) => (
  <>
    <a href={requestsPath({ upstream_model: model.id })} title="Requests for this model">
      <code>{shorten(model.id, 80)}</code>
    </a>{" "}
    {model.preview && <span class="badge idle">preview</span>}
    {model.absent && (
      <span class="badge idle" title="An earlier list of the last 24 hours had it; it may serve.">
        not in the last list
      </span>
    )}
    {model.name !== model.id && (
      <small>
        <Value of={model.name} max={60} />
      </small>
    )}
    {model.aliases.length > 0 && <small>aliases: {model.aliases.map((alias) => shorten(alias, 40)).join(", ")}</small>}
    {!model.enabled && <NotEnabled />}
    {model.warnings.map(({ message }) => (
      <small class="reason">
        <Sentence of={message} />
      </small>
    ))}
    <UnsupportedFields model={model} now={now} />
  </>
);

function LimitsOf({ model }: { model: ModelItem }): Markup {
  const { kind, limits } = model;
  if (kind === "embeddings")
    return (
      <>
        <Limit of={limits.inputs} /> <span class="soft">texts per request</span>
      </>
    );
  return (
    <>
      <Limit of={limits.context} />
      <span class="soft">, </span>
      <Limit of={limits.output} />
      {limits.prompt !== limits.upstream_prompt && (
        <small>
          prompt up to <Limit of={limits.prompt} />
          {limits.upstream_prompt !== null && (
            <>
              {" "}
              of <Limit of={limits.upstream_prompt} />
            </>
          )}
          , by <code>maxPromptTokens</code>
        </small>
      )}
      <TokenCountOf model={model} />
    </>
  );
}

const AbilitiesOf = ({ model }: { model: ModelItem }) => (
  <>
    {abilities(model)}
    {model.kind === "chat" && model.assumed.length > 0 && (
      <small>not stated: {model.assumed.map((ability) => abilityNames[ability] ?? ability).join(", ")}</small>
    )}
    {model.supports.reasoning_efforts.length > 0 && (
      <small>effort: {shorten(model.supports.reasoning_efforts.join(", "), 80)}</small>
    )}
  </>
);

function accountsOf({ provider, accounts }: ModelItem, all: number): Child {
  if (provider !== null) return <span class="soft">none needed</span>;
  if (accounts.length === all) return "all";
  return accounts.length === 0 ? "none" : shorten(accounts.join(", "), 120);
}

const NotEnabled = () => (
  <small>
    <span class="badge warn">not enabled</span> Enable it in{" "}
    <a href="https://github.com/settings/copilot/features" rel="noreferrer noopener">
      your GitHub settings
    </a>
    .
  </small>
);

/** Fields that the model rejected. */
const UnsupportedFields = ({ model, now }: ModelProps) => (
  <>
    {model.refused_fields.map(({ field, until_ms }) => (
      <small>
        does not support <code>{shorten(field, 80)}</code>; removed from requests until {moment(until_ms, now)}
      </small>
    ))}
  </>
);

const Limit = ({ of }: { of: number | null }) =>
  of === null ? (
    <Unknown />
  ) : (
    <span class="num" title={String(of)}>
      {compact(of)}
    </span>
  );

/** How far this model's tokens are from those that are counted here, once that was learnt. */
function TokenCountOf({ model: { token_count } }: { model: ModelItem }): Markup | false {
  const { ratio, requests } = token_count;
  if (requests === 0) return false;
  return (
    <small>
      estimated tokens × {significant(ratio)}: learnt from {plural(requests, "request")}
    </small>
  );
}

function abilities({ supports, limits, kind, assumed }: ModelItem): string {
  if (kind === "embeddings") return "embeddings";
  const isStated = (ability: string) => !assumed.includes(ability);
  const can = [
    supports.tools && isStated("tools") && "tools",
    supports.vision && isStated("vision") && `images${limits.images === null ? "" : ` (${limits.images})`}`,
    supports.structured_outputs && isStated("structuredOutputs") && "structured output",
    (supports.adaptive_thinking || supports.thinking_budget) && "thinking",
  ].filter(Boolean);
  return can.length > 0 ? can.join(", ") : assumed.length > 0 ? "" : "text only";
}

const abilityNames: Record<string, string> = {
  tools: "tools",
  vision: "images",
  structuredOutputs: "structured output",
};

/** In the words of every other place, and below them what these leave out. */
function PriceOf({ model: { price }, now }: ModelProps): Markup {
  const { tokens, long, units, promotion } = price;
  if (!tokens && units === null) return <Unknown />;
  const perMillion = (credits: number | null) =>
    credits === null ? "?" : significant((credits * 1_000_000) / (tokens?.per ?? 1_000_000));
  const words = priceInWords(price);
  const inAndOut = ({ input, output }: NonNullable<typeof long | typeof tokens>) =>
    `${perMillion(input)}/${perMillion(output)}`;
  return (
    <>
      {words}
      {tokens && words !== "free" && (
        <small>
          {!words.startsWith(inAndOut(tokens)) && `${inAndOut(tokens)} credits per M in/out, `}
          {perMillion(tokens.cached_input)} cached
        </small>
      )}
      {long && (
        <small>
          above {compact(long.above)}: {inAndOut(long)}, {perMillion(long.cached_input)} cached
        </small>
      )}
      {price.boundary_unknown && (
        <small>the prices of long prompts: the upstream does not say from where on they apply</small>
      )}
      {promotion && (
        <small>
          <span class="badge idle">promotion</span>{" "}
          {promotion.discount_percent !== null && <>{significant(promotion.discount_percent)}% less</>}
          {promotion.ends_at_ms !== null && <> until {moment(promotion.ends_at_ms, now)}</>}
          {promotion.message !== null && <>: {shorten(promotion.message, 160)}</>}
        </small>
      )}
    </>
  );
}
