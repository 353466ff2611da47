/** Dialogs: a question, a form, a secret that is shown once. The browser's own element keeps the keyboard in them. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { messageOf } from '../base/request.ts';
import { Field } from './fields.tsx';
import { notify } from './notices.tsx';

type Open = {
  readonly id: number;
  readonly content: (close: () => void) => ComponentChildren;
  readonly isKept: boolean;
};

const open = signal<readonly Open[]>([]);
let lastId = 0;

/** `isKept`: it stays when the page is left, as a secret does that is shown only once. */
export function openDialog(content: Open['content'], isKept = false): void {
  lastId += 1;
  open.value = [...open.peek(), { id: lastId, content, isKept }];
}

const close = (id: number): void => {
  open.value = open.peek().filter((each) => each.id !== id);
};

/** Closes the questions of a page that is left. */
export function closeQuestions(): void {
  open.value = open.peek().filter(({ isKept }) => isKept);
}

/** Closes all, secrets too: their user is not signed in any more. */
export function closeAllDialogs(): void {
  open.value = [];
}

export const isAsking = (): boolean => open.value.length > 0;

export function Dialogs() {
  return (
    <>
      {open.value.map(({ id, content }) => (
        <div key={id}>{content(() => close(id))}</div>
      ))}
    </>
  );
}

type DialogProps = {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** A stray Escape must not drop a secret that is shown only once. */
  readonly isFirm?: boolean;
  readonly class?: string;
  readonly isTitleHidden?: boolean;
};

export function Dialog({ title, onClose, children, isFirm = false, class: kind = '', isTitleHidden }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const name = useId();
  useEffect(() => {
    const opener = document.activeElement;
    const dialog = ref.current;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>('[data-focus]')?.focus();
    return () => {
      dialog?.close();
      // The browser gives the focus back to what has opened the dialog, but that may be gone.
      if (document.activeElement !== document.body && document.activeElement !== null) return;
      const target = opener instanceof HTMLElement && opener.isConnected ? opener : document.getElementById('main');
      target?.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={kind}
      aria-labelledby={name}
      {...(isFirm ? { closedby: 'none' } : {})}
      onCancel={(event) => {
        event.preventDefault();
        if (!isFirm) onClose();
      }}
      // Pressed twice, Escape closes it in spite of the event.
      onClose={() => onClose()}
    >
      <h2 id={name} class={isTitleHidden ? 'sr-only' : ''}>
        {title}
      </h2>
      {children}
    </dialog>
  );
}

export type Question = {
  readonly title: string;
  readonly text?: ComponentChildren;
  /** Names its subject. */
  readonly subject?: ComponentChildren;
  readonly confirm: string;
  readonly isHarmless?: boolean;
  /** Asks for a reason, which is recorded. */
  readonly reason?: 'required' | 'optional';
  readonly children?: ComponentChildren;
  /** Rejects where the gateway refuses: the dialog stays open and says why. */
  readonly onConfirm: (reason: string) => Promise<unknown>;
  /** Another way out, such as a stop that holds. */
  readonly other?: { readonly label: string; readonly onChoose: () => void } | undefined;
};

/** Asks before something is changed. */
export const ask = (question: Question): void =>
  openDialog((onClose) => <QuestionDialog {...question} onClose={onClose} />);

export function QuestionDialog(props: Question & { readonly onClose: () => void }) {
  const { title, text, subject, confirm, isHarmless, reason, children, onConfirm, other, onClose } = props;
  const said = useRef<HTMLTextAreaElement>(null);
  return (
    <Dialog title={title} onClose={onClose}>
      {text !== undefined && <p>{text}</p>}
      {subject !== undefined && <div class="subject">{subject}</div>}
      <SubmitForm
        submit={confirm}
        isDanger={isHarmless !== true}
        onSubmit={async () => {
          await onConfirm(said.current?.value.trim() ?? '');
          onClose();
        }}
        extra={
          <>
            {other !== undefined && (
              <button
                type="button"
                class="quiet"
                onClick={() => {
                  onClose();
                  other.onChoose();
                }}
              >
                {other.label}
              </button>
            )}
            <button type="button" data-focus={reason === undefined ? true : undefined} onClick={onClose}>
              Cancel
            </button>
          </>
        }
      >
        {children}
        {reason !== undefined && (
          <Field label="Reason" hint="Recorded in the audit log.">
            {(id) => (
              <textarea
                ref={said}
                rows={2}
                maxLength={1024}
                required={reason === 'required'}
                data-focus
                onKeyDown={(event) => {
                  if (event.key !== 'Enter' || event.shiftKey) return;
                  event.preventDefault();
                  event.currentTarget.form?.requestSubmit();
                }}
                {...id}
              />
            )}
          </Field>
        )}
      </SubmitForm>
    </Dialog>
  );
}

type FormProps = {
  readonly submit: string;
  readonly onSubmit: () => Promise<unknown>;
  readonly children?: ComponentChildren;
  readonly extra?: ComponentChildren;
  readonly isDanger?: boolean;
};

/** A form that stays open, with the reason, when what it asks for is refused. */
export function SubmitForm({ submit, onSubmit, children, extra, isDanger = false }: FormProps) {
  const [error, setError] = useState('');
  const [isBusy, setBusy] = useState(false);
  const isGone = useRef(false);
  useEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy) return;
    setError('');
    setBusy(true);
    try {
      await onSubmit();
    } catch (problem) {
      if (isGone.current)
        notify(messageOf(problem), 'error'); // closed meanwhile, which has taken back nothing
      else setError(messageOf(problem));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={send}>
      {children}
      <p class="form-error" role="alert">
        {error}
      </p>
      <div class="dialog-actions">
        {extra}
        <button
          type="submit"
          class={isDanger ? 'solid danger' : 'solid'}
          aria-busy={isBusy}
          // The second half of a double click was meant for what was there before the question.
          onClick={(event) => event.detail > 1 && event.preventDefault()}
        >
          {submit}
        </button>
      </div>
    </form>
  );
}

type FormDialogProps = Omit<FormProps, 'extra'> & Pick<DialogProps, 'title' | 'onClose'>;

/** Asks for what is to be made. */
export const FormDialog = ({ title, onClose, ...form }: FormDialogProps) => (
  <Dialog title={title} onClose={onClose}>
    <SubmitForm
      {...form}
      extra={
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      }
    />
  </Dialog>
);

/** A secret that the gateway will not show again. It stays until it is dismissed. */
export function showSecret(title: string, text: ComponentChildren, secret: string): void {
  openDialog((onClose) => <SecretDialog {...{ title, text, secret, onClose }} />, true);
}

type SecretProps = {
  readonly title: string;
  readonly text: ComponentChildren;
  readonly secret: string;
  readonly onClose: () => void;
};

function SecretDialog({ title, text, secret, onClose }: SecretProps) {
  const value = useRef<HTMLOutputElement>(null);
  return (
    <Dialog title={title} onClose={onClose} isFirm>
      <p>{text}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it is to be read and copied by the keyboard */}
      <output class="secret mono" tabIndex={0} ref={value}>
        {secret}
      </output>
      <div class="dialog-actions">
        {/* Without TLS there is no clipboard: the operator copies what is selected. */}
        <CopyButton text={secret} onRefused={() => value.current && getSelection()?.selectAllChildren(value.current)} />
        <button type="button" class="solid" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  );
}

type CopyProps = { readonly text: string; readonly label?: string; readonly onRefused?: () => void };

export function CopyButton({ text, label = 'Copy', onRefused }: CopyProps) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2_000);
    } catch {
      onRefused?.();
    }
  };
  return (
    <button type="button" class="small" onClick={copy}>
      {isCopied ? 'Copied' : label}
    </button>
  );
}
