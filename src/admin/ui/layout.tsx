/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The layout of every page: title, navigation, demo badge and footer. */
import type { Child, Markup } from "./jsx/jsx-runtime";

/** What the layout of every page needs. */
export interface Frame {
  version: string;
  demo: boolean;
  /** Whether to show "Sign out". */
  signedIn: boolean;
  /** The name of the member who is signed in; missing for the owner. */
  member?: string;
  /** The pages that the visitor may open, in groups; the last one has those that are rarely needed. */
  menu: readonly (readonly MenuItem[])[];
  /** Members of a team sign in with their keys. */
  hasMembers?: boolean;
  /** They may also sign in with GitHub, by an app of the owner's. */
  hasGithub?: boolean;
  /** The owner can sign in. */
  hasAdminToken?: boolean;
  /** Changes with the assets, so that browsers do not reuse those of another version. */
  assets: string;
  /** The CSRF token of forms. */
  formToken: string;
}

interface MenuItem {
  path: string;
  title: string;
}

interface PageProps {
  frame: Frame;
  title: string;
  /** The path of the active menu item. */
  current?: string;
  /** Content beside the title. */
  aside?: Child;
  children?: Child;
}

export function Page({ frame, title, current, aside, children }: PageProps): Markup {
  return (
    <Document frame={frame} title={title}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="bar">
        <Brand frame={frame} />
        <Menu groups={frame.menu} current={current} />
        {frame.signedIn && (
          <form method="post" action="/admin/sign-out" class="leave">
            {frame.member !== undefined && <span class="who">{frame.member}</span>}
            <FormTokenInput frame={frame} />
            <button type="submit" class="quiet">
              Sign out
            </button>
          </form>
        )}
      </header>
      <main id="main" tabindex="-1">
        <div class="title">
          <h1>{title}</h1>
          {aside}
        </div>
        {children}
      </main>
      <footer class="foot">
        <span>dragoman {frame.version}</span>
        <span>Time zone: {zone()}</span>
        <span>Prompts and responses are never stored.</span>
      </footer>
    </Document>
  );
}

function Menu({ groups, current }: { groups: Frame["menu"]; current: string | undefined }): Markup {
  const rare = groups.at(-1) ?? [];
  const here = rare.find(({ path }) => path === current);
  return (
    <nav aria-label="Pages">
      {groups.slice(0, -1).map((items) => (
        <MenuItems items={items} current={current} />
      ))}
      {rare.length > 0 && (
        <details class="more">
          <summary class={[here !== undefined && "here"]}>{here ? `More: ${here.title}` : "More"}</summary>
          <MenuItems items={rare} current={current} />
        </details>
      )}
    </nav>
  );
}

const MenuItems = ({ items, current }: { items: readonly MenuItem[]; current: string | undefined }) => (
  <ul>
    {items.map(({ path, title }) => (
      <li>
        <a href={path} aria-current={path === current ? "page" : undefined}>
          {title}
        </a>
      </li>
    ))}
  </ul>
);

/** A page without menu or data, for callers who are not signed in. */
export function BarePage({ frame, title, children }: Omit<PageProps, "current" | "aside">): Markup {
  return (
    <Document frame={frame} title={title}>
      <main id="main" class="plain" tabindex="-1">
        <Brand frame={frame} />
        <h1>{title}</h1>
        {children}
      </main>
    </Document>
  );
}

export const FormTokenInput = ({ frame }: { frame: Frame }) => (
  <input type="hidden" name="form_token" value={frame.formToken} />
);

function Document({ frame, title, children }: Pick<PageProps, "frame" | "title" | "children">): Markup {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>{`${frame.demo ? "DEMO · " : ""}${title} · dragoman`}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {/* With `no-referrer`, browsers would send `Origin: null` with our own forms. */}
        <meta name="referrer" content="same-origin" />
        <link rel="stylesheet" href={`/admin/assets/admin.css?${frame.assets}`} />
        <link rel="icon" type="image/svg+xml" href={`/admin/assets/icon.svg?${frame.assets}`} />
        <script type="module" src={`/admin/assets/admin.js?${frame.assets}`}></script>
      </head>
      <body>{children}</body>
    </html>
  );
}

const Brand = ({ frame }: { frame: Frame }) => (
  <div class="brand">
    <a href="/admin" class="name">
      <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
        <path class="mark-one" d="M3 4h11a3 3 0 0 1 3 3v4a3 3 0 0 1-3 3H8l-5 4z" />
        <path class="mark-two" d="M21 20.5l-4.2-3.5H11a2 2 0 0 1-2-2v0h5.5a3.5 3.5 0 0 0 3.5-3.5V9h1a2 2 0 0 1 2 2z" />
      </svg>
      dragoman
    </a>
    {frame.demo && (
      <strong class="demo" title="Simulated upstream: no account is used and nothing is charged">
        DEMO
      </strong>
    )}
  </div>
);

/** `Europe/Berlin (GMT+1)` */
function zone(): string {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const minutes = -new Date().getTimezoneOffset();
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `${timeZone} (UTC${minutes < 0 ? "−" : "+"}${hours}${rest ? `:${rest}` : ""})`;
}
