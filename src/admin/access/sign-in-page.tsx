/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The pages for a caller who is not signed in, and error pages. Those before the sign-in show no data. */
import type { ProxyError } from "../../lib/errors";
import { Sentence } from "../ui/format";
import type { Markup } from "../ui/jsx/jsx-runtime";
import { BarePage, type Frame, Page } from "../ui/layout";

/**
 * Shown when another site links here. The extra click makes it a same-site request, so that no other site can load a page
 * with data, and the browser sends the cookie of the sign-in.
 */
export const SignedInPage = ({ frame, path }: { frame: Frame; path: string }): Markup => (
  <BarePage frame={frame} title="Continue to dragoman?">
    <p>A link on another site opened this page. Continue only if you followed that link yourself.</p>
    <p>
      <a href={path} class="button primary">
        Continue
      </a>
    </p>
  </BarePage>
);

/** @param wrong Why the token was rejected, or why a sign-in has ended. */
export const SignInPage = ({ frame, path, wrong }: { frame: Frame; path: string; wrong?: string }): Markup => (
  <BarePage frame={frame} title="Sign in">
    {frame.hasAdminToken === false ? (
      <p>
        A member enters their own key. The owner cannot sign in from another machine or through another host name,
        because <code>ADMIN_TOKEN</code> is not set where dragoman runs.
      </p>
    ) : frame.hasMembers ? (
      <p>
        A member enters their own key. The owner enters the admin token, which is the value of <code>ADMIN_TOKEN</code>{" "}
        where dragoman runs.
      </p>
    ) : (
      <p>
        Enter the admin token, which is the value of <code>ADMIN_TOKEN</code> where dragoman runs. It is asked for on
        other machines, through other host names and, if dragoman was started with <code>--admin-auth=always</code>, on
        this machine too.
      </p>
    )}
    <form method="post" action="/admin/sign-in" class="sign-in">
      <input type="hidden" name="next" value={path} />
      <label for="token">
        {frame.hasAdminToken === false ? "Key" : frame.hasMembers ? "Admin token or key" : "Admin token"}
      </label>
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
      <button type="submit" class="primary">
        Sign in
      </button>
    </form>
    {frame.hasGithub && (
      <p>
        Or, as a member,{" "}
        <a href={`/admin/github?next=${encodeURIComponent(path)}`} class="button">
          sign in with GitHub
        </a>
      </p>
    )}
    <p class="soft">
      You stay signed in for 12 hours. The {frame.hasMembers ? "key or token" : "token"} is not stored in this browser.
    </p>
  </BarePage>
);

/** For a caller who has no access, with or without a token. */
export const ClosedPage = ({ frame, error }: { frame: Frame; error: ProxyError }): Markup => (
  <BarePage frame={frame} title={closedTitles[error.kind] ?? "Access denied"}>
    <p>
      <Sentence of={error.message} />
    </p>
    {frame.member !== undefined && (
      <p>
        <a href="/admin">Go to your overview</a>
      </p>
    )}
  </BarePage>
);

const closedTitles: Record<string, string> = { rate_limit: "Too many attempts", unable: "Not available now" };

/** An error, for a caller who has access, with the way back to the page of the menu below which it happened. */
export function FailurePage({ frame, path, error }: { frame: Frame; path: string; error: ProxyError }): Markup {
  const title = titles[error.status] ?? "Something went wrong";
  const [overview, ...others] = frame.menu.flat();
  const above = others.find((each) => path.startsWith(`${each.path}/`));
  const back = above ?? overview!;
  return (
    <Page frame={frame} title={title} current={above?.path}>
      <section class="empty">
        <p>
          <Sentence of={error.message} />
        </p>
        <p>
          <a href={back.path}>Go to the page {back.title}</a>
        </p>
      </section>
    </Page>
  );
}

/** Replaces a part of a page that failed. */
export const FailedPart = (sentence: string): Markup => (
  <p class="fault" role="alert">
    <Sentence of={sentence} />
  </p>
);

const titles: Record<number, string> = {
  400: "Invalid request",
  403: "Access denied",
  404: "Not found",
  405: "Method not allowed",
  409: "Conflict",
  413: "Too large",
};
