/** The door: an API key, or e-mail and password where accounts exist. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Methods } from '../base/api-types.ts';
import { Problem, request } from '../base/request.ts';
import { signInWithKey, signInWithPassword } from '../session/session.ts';
import { SubmitForm } from '../ui/dialog.tsx';
import { Check, Field } from '../ui/fields.tsx';

export const PASSWORD_HINT = 'At least 12 characters.';
const MAIL_SENT = 'If the account exists, an e-mail is on its way.';
const SETUP =
  'There are no accounts yet. To make the first, open the setup link that the gateway printed when it started.';

type Form = 'key' | 'password' | 'register' | 'forgotten';

type DoorProps = {
  readonly offer: Methods;
  readonly notice?: string;
  readonly lastKind?: 'key' | 'account';
  readonly email?: string;
  readonly onSignedIn: () => void;
};

function firstForm({ offer, lastKind, notice }: DoorProps): readonly [Form, string | undefined] {
  if (!offer.methods.includes('password') || lastKind === 'key') return ['key', notice];
  if (offer.setup_required) return ['key', SETUP];
  if (offer.registration === 'first_account')
    return ['register', 'There are no accounts yet. The first one becomes the owner.'];
  return ['password', notice];
}

/** A card that shows one of several forms, each with links to others. */
export function SignInDoor(props: DoorProps) {
  const { offer, email = '' } = props;
  const [[form, message], show] = useState(firstForm(props));
  const [typed, setTyped] = useState(email);
  useEffect(() => {
    document.title = 'Sign in · svc-gateway';
  }, []);
  const hasAccounts = offer.methods.includes('password');
  const link = (text: string, to: Form, when = true) =>
    when ? (
      <button key={to} type="button" class="link" onClick={() => show([to, undefined])}>
        {text}
      </button>
    ) : null;
  const shared = { ...props, message, typed, setTyped };
  return (
    <Door key={form}>
      {form === 'key' && <KeyForm {...shared} links={link('Use e-mail and password', 'password', hasAccounts)} />}
      {form === 'password' && (
        <PasswordForm
          {...shared}
          links={
            <>
              {link('Forgot password?', 'forgotten', offer.reset_by_mail === true)}
              {link('API key', 'key')}
              {link('Create an account', 'register', offer.registration === 'open')}
            </>
          }
        />
      )}
      {form === 'register' && (
        <RegisterForm
          {...shared}
          links={
            <>
              {link('API key', 'key')}
              {link('Sign in', 'password', offer.registration !== 'first_account')}
            </>
          }
        />
      )}
      {form === 'forgotten' && (
        <ForgottenForm
          {...shared}
          onSent={() => show(['password', MAIL_SENT])}
          links={link('Back to sign-in', 'password')}
        />
      )}
    </Door>
  );
}

/** The card in the middle of an empty page; the first empty field has the focus. */
export function Door({ children }: { readonly children: ComponentChildren }) {
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const inputs = [...(card.current?.querySelectorAll('input') ?? [])];
    (inputs.find(({ value, type }) => value === '' && type !== 'checkbox') ?? inputs[0])?.focus();
  }, []);
  return (
    <main class="door">
      <p class="brand">
        <img src="/favicon.svg" alt="" width={28} height={28} /> svc-gateway
      </p>
      <div class="card" ref={card}>
        {children}
      </div>
    </main>
  );
}

type FormProps = {
  readonly message: string | undefined;
  readonly typed: string;
  readonly setTyped: (email: string) => void;
  readonly links: ComponentChildren;
  readonly onSignedIn: () => void;
};

const Message = ({ text }: { readonly text: string | undefined }) =>
  text === undefined ? null : (
    <p class="note" role="status">
      {text}
    </p>
  );

function KeyForm({ message, links, onSignedIn }: FormProps) {
  const key = useRef<HTMLInputElement>(null);
  const send = async (): Promise<void> => {
    const text = key.current?.value.trim() ?? '';
    if (!/^[\x21-\x7e]+$/.test(text))
      throw new Problem(0, { detail: 'This is not an API key: keys contain no spaces or accented letters.' });
    await signInWithKey(text);
    onSignedIn();
  };
  return (
    <>
      <h1>Sign in</h1>
      <Message text={message} />
      <SubmitForm submit="Sign in" onSubmit={send}>
        <Field label="API key" hint="You stay signed in for 24 hours. The key itself is not stored.">
          {(id) => <KeyInput reference={key} attributes={id} />}
        </Field>
      </SubmitForm>
      <div class="links">{links}</div>
    </>
  );
}

/** A textbox whose letters are not shown: the browser must not offer to keep it as a password. */
const KeyInput = ({
  reference,
  attributes,
}: {
  readonly reference: { current: HTMLInputElement | null };
  readonly attributes: object;
}) => (
  <input
    ref={reference}
    class="veiled"
    type="text"
    required
    autocomplete="off"
    autocapitalize="none"
    spellcheck={false}
    {...attributes}
  />
);

export const EmailField = ({
  value,
  onValue,
  isFixed = false,
}: {
  readonly value: string;
  readonly onValue: (email: string) => void;
  readonly isFixed?: boolean;
}) => (
  <Field label="E-mail">
    {(id) => (
      <input
        type="email"
        required
        autocomplete="username"
        value={value}
        readOnly={isFixed}
        onInput={(event) => onValue(event.currentTarget.value)}
        {...id}
      />
    )}
  </Field>
);

type PasswordProps = {
  readonly label: string;
  readonly reference: { current: HTMLInputElement | null };
  readonly isNew?: boolean;
  readonly hint?: string;
};

export const PasswordField = ({ label, reference, isNew = false, hint }: PasswordProps) => (
  <Field label={label} hint={hint}>
    {(id) => (
      <input
        ref={reference}
        type="password"
        required
        autocomplete={isNew ? 'new-password' : 'current-password'}
        {...id}
      />
    )}
  </Field>
);

function PasswordForm({ message, typed, setTyped, links, onSignedIn }: FormProps) {
  const password = useRef<HTMLInputElement>(null);
  const [isKept, setKept] = useState(false);
  const send = async (): Promise<void> => {
    await signInWithPassword(typed.trim(), password.current?.value ?? '', isKept);
    onSignedIn();
  };
  return (
    <>
      <h1>Sign in</h1>
      <Message text={message} />
      <SubmitForm submit="Sign in" onSubmit={send}>
        <EmailField value={typed} onValue={setTyped} />
        <PasswordField label="Password" reference={password} />
        <Check label="Stay signed in for 30 days" checked={isKept} onChecked={setKept} />
      </SubmitForm>
      <div class="links">{links}</div>
    </>
  );
}

function RegisterForm({ message, typed, setTyped, links, onSignedIn }: FormProps) {
  const password = useRef<HTMLInputElement>(null);
  const send = async (): Promise<void> => {
    const body = { email: typed.trim(), password: password.current?.value };
    await request('POST', '/api/v1/auth/register', { body });
    await signInWithPassword(typed.trim(), password.current?.value ?? '', false);
    onSignedIn();
  };
  return (
    <>
      <h1>{message === undefined ? 'Create an account' : 'Create the owner account'}</h1>
      <Message text={message} />
      <SubmitForm submit="Create account" onSubmit={send}>
        <EmailField value={typed} onValue={setTyped} />
        <PasswordField label="Password" reference={password} isNew hint={PASSWORD_HINT} />
      </SubmitForm>
      <div class="links">{links}</div>
    </>
  );
}

function ForgottenForm({ typed, setTyped, links, onSent }: FormProps & { readonly onSent: () => void }) {
  const send = async (): Promise<void> => {
    await request('POST', '/api/v1/auth/password/reset', { body: { email: typed.trim() } });
    onSent();
  };
  return (
    <>
      <h1>Reset password</h1>
      <p class="hint">If the account exists, it gets a link that works for one hour.</p>
      <SubmitForm submit="Send link" onSubmit={send}>
        <EmailField value={typed} onValue={setTyped} />
      </SubmitForm>
      <div class="links">{links}</div>
    </>
  );
}
