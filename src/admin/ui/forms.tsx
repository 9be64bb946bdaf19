/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The two forms of the pages: a button that does one thing, and a card of fields with a button below it. */
import type { Child } from "./jsx/jsx-runtime";
import { FormTokenInput, type Frame } from "./layout";

interface ActionButtonProps {
  frame: Frame;
  /** The path that it posts to. */
  to: string;
  /** What it posts; a field that is null is left out. */
  fields?: Record<string, string | null>;
  /** For screen readers, where the words on it do not say what it is about. */
  label?: string;
  children?: Child;
}

/** Works without a script. */
export const ActionButton = ({ frame, to, fields = {}, label, children }: ActionButtonProps) => (
  <form method="post" action={to}>
    <FormTokenInput frame={frame} />
    {Object.entries(fields).map(([name, value]) => value !== null && <input type="hidden" name={name} value={value} />)}
    <button type="submit" class="quiet" aria-label={label}>
      {children}
    </button>
  </form>
);

interface ConfirmButtonProps extends Omit<ActionButtonProps, "label"> {
  /** The words on both buttons. */
  words: string;
  /** Other words on the first one. */
  ask?: string;
  /** What it is about, for screen readers; left out where the page has one such button. */
  name?: string;
  /** What follows from it. */
  children?: Child;
}

/** Says what follows before it does anything. */
export const ConfirmButton = ({ words, ask = words, name, children, ...action }: ConfirmButtonProps) => (
  <details class="confirm">
    <summary aria-label={name !== undefined && ask === words ? `${words} ${name}…` : undefined}>{ask}…</summary>
    <p>{children}</p>
    <ActionButton {...action} label={name === undefined ? undefined : `${words} ${name}`}>
      {words}
    </ActionButton>
  </details>
);

interface CardFormProps {
  frame: Frame;
  /** The path that it posts to. */
  to: string;
  title: string;
  /** The words on the button. */
  submit: string;
  children?: Child;
}

export const CardForm = ({ frame, to, title, submit, children }: CardFormProps) => (
  <form method="post" action={to} class="config" autocomplete="off">
    <FormTokenInput frame={frame} />
    <fieldset class="card">
      <legend>{title}</legend>
      {children}
      <div class="actions">
        <button type="submit" class="primary">
          {submit}
        </button>
      </div>
    </fieldset>
  </form>
);
