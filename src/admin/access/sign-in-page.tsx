/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What whoever is not in sees: the way in where there is one, and nothing of the owner's. */
import type { ProxyError } from "../../errors";
import { Sentence } from "../ui/format";
import type { Markup } from "../ui/jsx/jsx-runtime";
import { BarePage, type Frame, Page } from "../ui/layout";

/**
 * A link on some other site led here. One more step, by a page of ours: so no other site ever has a page with data loaded
 * in its name, and the cookie comes along.
 */
export const SignedInPage = ({ frame, path }: { frame: Frame; path: string }): Markup => (
  <BarePage frame={frame} title="Another site led here">
    <p>If it was you who followed the link, go on.</p>
    <p>
      <a href={path} class="button primary">
        Go on to the page
      </a>
    </p>
  </BarePage>
);

/** @param wrong What was wrong with the token that was given. */
export const SignInPage = ({ frame, path, wrong }: { frame: Frame; path: string; wrong?: string }): Markup => (
  <BarePage frame={frame} title="Sign in">
    <p>
      These pages are the owner’s. You came from another machine, or by another name than this one’s: the admin token
      that was set as <code>ADMIN_TOKEN</code> where dragoman runs lets you in.
    </p>
    <form method="post" action="/admin/sign-in" class="sign-in">
      <input type="hidden" name="next" value={path} />
      <label for="token">Admin token</label>
      <input
        id="token"
        name="token"
        type="password"
        autocomplete="current-password"
        required={true}
        autofocus={true}
        aria-invalid={wrong ? "true" : undefined}
        aria-describedby={wrong ? "wrong" : undefined}
      />
      {wrong && (
        <p id="wrong" class="fault" role="alert">
          {wrong}
        </p>
      )}
      <button type="submit">Sign in</button>
    </form>
    <p class="soft">The token is not kept in this browser; signing in holds for twelve hours.</p>
  </BarePage>
);

/** Somebody who may not come in at all. */
export const ClosedPage = ({ frame, error }: { frame: Frame; error: ProxyError }): Markup => (
  <BarePage frame={frame} title={error.kind === "rate_limit" ? "Too many tries" : "Not from here"}>
    <p>
      <Sentence of={error.message} />
    </p>
  </BarePage>
);

/** Something went wrong with a page, for somebody who is in. */
export function FailurePage({ frame, error }: { frame: Frame; error: ProxyError }): Markup {
  const title = titles[error.status] ?? "That did not work";
  return (
    <Page frame={frame} title={title}>
      <section class="empty">
        <p>
          <Sentence of={error.message} />
        </p>
        <p>
          <a href="/admin">Go to the overview</a>
        </p>
      </section>
    </Page>
  );
}

/** Where a part of a page could not be made. */
export const NotFoundPage = (sentence: string): Markup => (
  <p class="fault" role="alert">
    <Sentence of={sentence} />
  </p>
);

const titles: Record<number, string> = {
  400: "That cannot be asked",
  403: "Not allowed",
  404: "Nothing is here",
  405: "Nothing is done here",
  409: "Changed meanwhile",
  413: "Too much at once",
};
