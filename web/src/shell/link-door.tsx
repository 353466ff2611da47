/** The page behind the link of an invite, of a reset, or of the first account. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Problem, request } from '../base/request.ts';
import { SubmitForm } from '../ui/dialog.tsx';
import { type Link, open } from './boot.ts';
import { Door, EmailField, PASSWORD_HINT, PasswordField } from './sign-in.tsx';

const READY = 'Your account is ready. Sign in with the password you just chose.';

type Words = {
  readonly title: string;
  readonly submit: string;
  readonly done: string;
  readonly path: string;
  readonly body: (token: string, password: string, email: string | undefined) => unknown;
};

const LINKS: Readonly<Record<Link['kind'], Words>> = {
  'accept-invite': {
    title: 'Accept the invite',
    submit: 'Create account',
    done: READY,
    path: '/api/v1/auth/invite/accept',
    body: (token, password) => ({ invite_token: token, password }),
  },
  'reset-password': {
    title: 'Choose a new password',
    submit: 'Set password',
    done: 'Your password has been changed. Sign in with the new one.',
    path: '/api/v1/auth/password/reset/confirm',
    body: (token, password) => ({ reset_token: token, new_password: password }),
  },
  setup: {
    title: 'Create the owner account',
    submit: 'Create account',
    done: READY,
    path: '/api/v1/auth/register',
    body: (token, password, email) => ({ setup_token: token, email, password }),
  },
};

export function LinkDoor({ link: { kind, token, email: invited } }: { readonly link: Link }) {
  const words = LINKS[kind];
  const [email, setEmail] = useState(invited ?? '');
  const password = useRef<HTMLInputElement>(null);
  const again = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = `${words.title} · svc-gateway`;
  }, []);
  const send = async (): Promise<void> => {
    const chosen = password.current?.value ?? '';
    if (chosen !== again.current?.value) throw new Problem(0, { detail: 'The passwords do not match.' });
    const whose = kind === 'setup' ? email.trim() : invited;
    await request('POST', words.path, { body: words.body(token, chosen, whose) });
    void open(words.done, whose);
  };
  return (
    <Door>
      <h1>{words.title}</h1>
      <SubmitForm submit={words.submit} onSubmit={send}>
        {/* What a password manager keeps the new password under. */}
        {(kind === 'setup' || invited !== undefined) && (
          <EmailField value={email} onValue={setEmail} isFixed={kind !== 'setup'} />
        )}
        <PasswordField label="New password" reference={password} isNew hint={PASSWORD_HINT} />
        <PasswordField label="Confirm password" reference={again} isNew />
      </SubmitForm>
      <div class="links">
        <button type="button" class="link" onClick={() => void open()}>
          Back to sign-in
        </button>
      </div>
    </Door>
  );
}
