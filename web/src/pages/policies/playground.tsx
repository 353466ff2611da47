/** Tries a check: what would be decided and why, by the set in force or by a draft, without changing anything. */

import { useState } from 'preact/hooks';
import { mappingIn } from '../../../../src/core/base/mapping.ts';
import type { Explanation } from '../../base/api-types.ts';
import { Problem } from '../../base/request.ts';
import { boundOrg, call } from '../../session/session.ts';
import { SubmitForm } from '../../ui/dialog.tsx';
import { Check, Field, TextField } from '../../ui/fields.tsx';
import { policyPath } from './paths.ts';

export type File = { readonly name: string; readonly text: string };

type Asked = {
  readonly agent: string;
  readonly action: string;
  readonly resource: string;
  readonly attributes: string;
};

/** `org/team/agent`, as everywhere; an agent without an org is `-/team/agent`. */
function agentFrom(text: string): { org_id: string; team_id: string; agent_id: string } {
  const [, org = '', team = '', agent = ''] = /^\s*([^/\s]*)\s*\/\s*([^/\s]+)\s*\/\s*([^/\s]+)\s*$/.exec(text) ?? [];
  if (agent === '') throw new Problem(0, { detail: 'Agent: write it as org/team/agent, such as acme/search/crawler.' });
  return { org_id: org === '-' || org === '–' ? '' : org, team_id: team, agent_id: agent };
}

function attributesFrom(text: string): unknown {
  if (text.trim() === '') return undefined;
  const attributes = mappingIn(text);
  if (attributes !== undefined) return attributes;
  throw new Problem(0, { detail: 'Attributes: write a JSON object, such as {"size": 3}.' });
}

const explain = (asked: Asked, files: readonly File[] | undefined): Promise<Explanation> =>
  call('POST', '/api/v1/policies/explain', {
    agent: agentFrom(asked.agent),
    action: asked.action.trim(),
    resource: asked.resource.trim(),
    attributes: attributesFrom(asked.attributes),
    ...(files === undefined ? {} : { files }),
  }).catch((problem) => {
    throw problem instanceof Problem && Array.isArray(problem.body.problems)
      ? new Problem(problem.status, { ...problem.body, detail: problem.body.problems.join('\n') })
      : problem;
  });

const SAMPLE = `name: draft
scope: global

rules:
  - id: everyday-tools
    actions: ["tool.call"]
    resources: ["web_search"]
    effect: allow
`;

export function Playground({ version, files }: { readonly version: string; readonly files: readonly File[] }) {
  const [asked, setAsked] = useState<Asked>({
    agent: boundOrg() === null ? '' : `${boundOrg()}/`,
    action: 'tool.call',
    resource: '',
    attributes: '',
  });
  const [isDraft, setDraft] = useState(false);
  const [draft, setText] = useState<readonly File[]>(files.length > 0 ? files : [{ name: 'draft.yaml', text: SAMPLE }]);
  const [answer, setAnswer] = useState<Explanation | undefined>();
  const set = (name: keyof Asked) => (value: string) => setAsked((before) => ({ ...before, [name]: value }));
  return (
    <section class="panel playground" id="playground" aria-label="Playground">
      <header>
        <div>
          <h2>Playground</h2>
          <p class="hint">What would be decided, and why. Nothing is recorded, reserved or changed.</p>
        </div>
      </header>
      <div class="columns">
        <div class="playground-form">
          <SubmitForm
            submit="Explain"
            onSubmit={async () => {
              setAnswer(undefined);
              setAnswer(await explain(asked, isDraft ? draft : undefined));
            }}
          >
            <TextField
              label="Agent"
              value={asked.agent}
              onValue={set('agent')}
              placeholder="acme/search/crawler"
              required
            />
            <div class="fields-row">
              <TextField label="Action" value={asked.action} onValue={set('action')} required />
              <TextField label="Resource" value={asked.resource} onValue={set('resource')} placeholder="web_search" />
            </div>
            <Field label="Attributes" hint="A JSON object; empty for none.">
              {(id) => (
                <textarea
                  class="code"
                  rows={3}
                  spellcheck={false}
                  value={asked.attributes}
                  onInput={(event) => set('attributes')(event.currentTarget.value)}
                  {...id}
                />
              )}
            </Field>
            <Check label="Against a draft instead of the set in force" checked={isDraft} onChecked={setDraft} />
            {isDraft && <Draft files={draft} onChange={setText} />}
          </SubmitForm>
        </div>
        <Answer answer={answer} version={version} isDraft={isDraft} />
      </div>
    </section>
  );
}

const Draft = ({
  files,
  onChange,
}: {
  readonly files: readonly File[];
  readonly onChange: (files: readonly File[]) => void;
}) => (
  <>
    {files.map(({ name, text }, at) => (
      <Field key={name} label={`Draft of ${name}`}>
        {(id) => (
          <textarea
            class="code"
            rows={files.length > 1 ? 8 : 14}
            spellcheck={false}
            value={text}
            onInput={({ currentTarget: { value } }) =>
              onChange(files.map((file, index) => (index === at ? { name, text: value } : file)))
            }
            {...id}
          />
        )}
      </Field>
    ))}
  </>
);

type AnswerProps = { readonly answer: Explanation | undefined; readonly version: string; readonly isDraft: boolean };

const WORD = { allow: 'allow', deny: 'deny', require_approval: 'pending' } as const;

function Answer({ answer, version, isDraft }: AnswerProps) {
  if (answer === undefined)
    return (
      <p class="hint pad" role="status">
        The answer stands here.
      </p>
    );
  const { decision, documents, overruled_by: overruled } = answer;
  return (
    <div class="answer" role="status">
      <p class="answer-word">
        <span class={`state ${WORD[decision.decision]}`}>{WORD[decision.decision]}</span>{' '}
        {decision.policy !== null && (
          <a href={policyPath(decision.policy, decision.rule_id)}>
            {[decision.policy, decision.rule_id].filter(Boolean).join(' · ')}
          </a>
        )}
      </p>
      <p>{decision.reason}</p>
      {overruled !== null && (
        <p class="warning">
          Denied all the same, as things are ({overruled.cause}): {overruled.reason}
        </p>
      )}
      <p class="hint">
        {isDraft
          ? 'By the draft'
          : answer.version === version
            ? 'By the set in force'
            : `By version ${answer.version.slice(0, 12)}`}
      </p>
      {documents.map(({ name, scope, rules }) => (
        <div key={name} class="traced">
          <h3>
            {name} <span class="hint">{scope}</span>
          </h3>
          <ul class="plain-list">
            {rules.map(({ id, effect, outcome, detail, decided }) => (
              <li key={id} class={decided ? 'decided' : outcome}>
                <span class="mono">{id}</span> <span class="hint">{effect.replaceAll('_', ' ')}</span>{' '}
                {outcome.replaceAll('_', ' ')}
                {detail !== '' && <span class="hint"> – {detail}</span>}
                {decided && <b> ← decided</b>}
              </li>
            ))}
          </ul>
        </div>
      ))}
    </div>
  );
}
