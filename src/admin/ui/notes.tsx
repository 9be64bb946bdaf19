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

/** A text that is shown this once, with a button that copies it. @param id Of the element. */
export const ShownOnce = ({ id, text }: { id: string; text: string }): Markup => (
  <>
    <pre id={id}>{text}</pre>
    <button type="button" data-copy={id} hidden>
      Copy
    </button>
  </>
);
