/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The live catalogue: what each model can do, what it costs, and who may use it. */
import { asProxyError } from "../../../errors";
import { forgetField, type ModelItem, modelItems } from "../../api/models";
import { compact, moment, plural, Sentence, shorten, significant, Unknown, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { FormTokenInput, type Frame, Page } from "../../ui/layout";
import { requestsPath } from "../../ui/links";
import { Head } from "../../ui/lists";
import { type PageContext, redirect } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";

export function modelsPage({ app, frame }: PageContext): StreamedPage {
  const now = app.now();
  const accounts = app.accounts.length;
  return {
    page: (
      <Page frame={frame} title="Models" current="/admin/models">
        <p class="lead">
          What your accounts are offered now, as the upstream lists it. Prices are AI credits for a million tokens; a
          credit is one US cent.
        </p>
        {slot}
      </Page>
    ),
    parts: [
      () =>
        modelItems(app).then(
          (models) => <Catalogue frame={frame} models={models} accounts={accounts} now={now} />,
          (thrown) => <NoList error={thrown} />,
        ),
    ],
  };
}

const NoList = ({ error }: { error: unknown }) => (
  <section class="empty">
    <h2>The list cannot be had</h2>
    <p>
      <Sentence of={asProxyError(error).message} />
    </p>
    <p>
      <a class="button" href="/admin/accounts">
        Look at the accounts
      </a>
    </p>
  </section>
);

/** What a form of the page sent: the field is sent to the model again. */
export function forgetFromPage({ app, form }: PageContext): Response {
  forgetField(app, form.get("model") ?? "", form.get("field") ?? "");
  return redirect("/admin/models");
}

interface CatalogueProps {
  frame: Frame;
  models: ModelItem[];
  /** How many there are. */
  accounts: number;
  now: number;
}

function Catalogue({ frame, models, accounts, now }: CatalogueProps): Markup {
  if (models.length === 0)
    return (
      <section class="empty">
        <h2>No model is offered</h2>
        <p>The upstream’s list is empty for your accounts.</p>
      </section>
    );
  const vendors = Map.groupBy(models, ({ vendor }) => vendor);
  const off = models.filter(({ enabled }) => !enabled);
  return (
    <>
      <p class="soft">
        {plural(models.length, "model")} of {plural(vendors.size, "maker")}
        {off.length > 0 && `, ${off.length} not enabled`}
      </p>
      {[...vendors].map(([vendor, theirs]) => (
        <section class="vendor" aria-labelledby={`of-${vendor.replace(/\W+/g, "-")}`}>
          <h2 id={`of-${vendor.replace(/\W+/g, "-")}`}>
            <Value of={vendor} />
          </h2>
          <ModelTable frame={frame} vendor={vendor} models={theirs} all={accounts} now={now} />
        </section>
      ))}
    </>
  );
}

interface TableProps {
  frame: Frame;
  vendor: string;
  models: ModelItem[];
  /** How many accounts there are. */
  all: number;
  now: number;
}

const ModelTable = ({ frame, vendor, models, all, now }: TableProps) => (
  <table class="rows models">
    <caption class="hidden">Models of {vendor}</caption>
    <Head columns={["Model", "Window, answer", "Endpoints", "Can", "Price", ...(all > 1 ? ["Accounts"] : [])]} />
    <tbody>
      {models.map((model) => (
        <ModelRow frame={frame} model={model} all={all} now={now} />
      ))}
    </tbody>
  </table>
);

function ModelRow({ frame, model, all, now }: Omit<TableProps, "vendor" | "models"> & { model: ModelItem }): Markup {
  const { limits, accounts, endpoints, supports } = model;
  return (
    <tr class={[!model.enabled && "off"]}>
      <th scope="row">
        <a href={requestsPath({ upstream_model: model.id })} title="Its requests">
          <code>{shorten(model.id, 80)}</code>
        </a>{" "}
        {model.preview && <span class="badge idle">preview</span>}
        {model.name !== model.id && (
          <small>
            <Value of={model.name} max={60} />
          </small>
        )}
        {model.aliases.length > 0 && <small>also {model.aliases.map((alias) => shorten(alias, 40)).join(", ")}</small>}
        {!model.enabled && <NotEnabled />}
        <Refused frame={frame} model={model} now={now} />
      </th>
      <td data-label="Window, answer">
        {model.kind === "embeddings" ? (
          <>
            <Limit of={limits.inputs} /> <span class="soft">texts a call</span>
          </>
        ) : (
          <>
            <Limit of={limits.context} />
            <span class="soft">, </span>
            <Limit of={limits.output} />
          </>
        )}
      </td>
      <td data-label="Endpoints">
        {endpoints.length === 0 ? <Unknown /> : endpoints.map((endpoint) => <code class="endpoint">{endpoint}</code>)}
      </td>
      <td data-label="Can">
        {abilities(model)}
        {supports.reasoning_efforts.length > 0 && (
          <small>effort {shorten(supports.reasoning_efforts.join(", "), 80)}</small>
        )}
      </td>
      <td data-label="Price">
        <PriceOf model={model} />
      </td>
      {all > 1 && (
        <td data-label="Accounts">
          {accounts.length === all ? "all" : accounts.length === 0 ? "none" : shorten(accounts.join(", "), 120)}
        </td>
      )}
    </tr>
  );
}

const NotEnabled = () => (
  <small>
    <span class="badge warn">not enabled</span> Accept its terms in{" "}
    <a href="https://github.com/settings/copilot/features" rel="noreferrer noopener">
      GitHub’s settings
    </a>
    .
  </small>
);

/** Each with a button that sends it again. */
const Refused = ({ frame, model, now }: { frame: Frame; model: ModelItem; now: number }) => (
  <>
    {model.refused_fields.map(({ field, until_ms }) => (
      <form method="post" action="/admin/models/forget" class="refused">
        <FormTokenInput frame={frame} />
        <input type="hidden" name="model" value={model.id} />
        <input type="hidden" name="field" value={field} />
        <small>
          refuses <code>{shorten(field, 80)}</code>, which is left out until {moment(until_ms, now)}
        </small>
        <button type="submit" class="quiet" aria-label={`Forget that ${field.slice(0, 80)} is refused`}>
          Forget
        </button>
      </form>
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

function abilities({ supports, limits, kind }: ModelItem): string {
  if (kind === "embeddings") return "embeddings";
  const can = [
    supports.tools && "tools",
    supports.vision && `images${limits.images === null ? "" : ` (${limits.images})`}`,
    supports.structured_outputs && "schemas",
    (supports.adaptive_thinking || supports.thinking_budget) && "thinking",
  ].filter(Boolean);
  return can.length === 0 ? "text only" : can.join(", ");
}

function PriceOf({ model: { price } }: { model: ModelItem }): Markup {
  const { tokens, long, units } = price;
  const perMillion = (credits: number) => significant((credits * 1_000_000) / (tokens?.per ?? 1_000_000));
  if (!tokens && units === null) return <Unknown />;
  return (
    <>
      {tokens && (
        <span class="num">
          {perMillion(tokens.input)} in · {perMillion(tokens.cached_input)} cached · {perMillion(tokens.output)} out
        </span>
      )}
      {long && (
        <small>
          above {compact(long.above)}: {perMillion(long.input)} in · {perMillion(long.cached_input)} cached ·{" "}
          {perMillion(long.output)} out
        </small>
      )}
      {units !== null &&
        (units === 0 ? (
          !tokens && <span>no premium requests</span>
        ) : (
          <span class={["num", tokens !== null && "also"]}>{significant(units)} premium a turn</span>
        ))}
    </>
  );
}
