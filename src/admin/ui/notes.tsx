/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What came of an action. */
import { Sentence } from "./format";
import type { Markup } from "./jsx/jsx-runtime";

/** @param what What was not done. @param why A sentence. */
export const FailureNote = ({ what, why }: { what: string; why: string }): Markup => (
  <div class="note bad" role="alert">
    <strong>{what}</strong> <Sentence of={why} />
  </div>
);

interface CopyProps {
  /** The id of the element whose text is copied. */
  of: string;
  /** For screen readers, where there are several. */
  label?: string;
  /** It stands beside other text. */
  quiet?: boolean;
}

/** Without a script there is none. */
export const Copy = ({ of, label, quiet }: CopyProps): Markup => (
  <button type="button" class={[quiet && "quiet"]} data-copy={of} hidden aria-label={label}>
    Copy
  </button>
);

/** A text that is shown this once, with a button that copies it. @param id Of the element. */
export const ShownOnce = ({ id, text }: { id: string; text: string }): Markup => (
  <>
    <pre id={id}>{text}</pre>
    <Copy of={id} />
  </>
);

/** Without a script the page loads itself anew every five seconds. */
export const ReloadedAlways = (): Markup => (
  <noscript>
    <meta http-equiv="refresh" content="5" />
  </noscript>
);
