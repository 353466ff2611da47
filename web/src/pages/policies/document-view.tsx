/** A policy document: its rules with how often each was hit, and its source. */
import { useEffect, useState } from 'preact/hooks';
import type { PolicyDocument, Rule } from '../../base/api-types.ts';
import { count } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { Tag } from '../../ui/names.tsx';
import type { RuleCount } from '../overview/stats.ts';
import { lineOfRule, partsOfYaml } from './highlight.ts';
import { documentText } from './rule-text.ts';

type ViewProps = {
  readonly document: PolicyDocument;
  readonly rules: readonly Rule[];
  readonly hits: readonly RuleCount[];
  readonly file: { readonly name: string; readonly text: string } | undefined;
  /** To be in view. */
  readonly ruleId: string | null;
};

export function DocumentView({ document, rules, hits, file, ruleId }: ViewProps) {
  const [isSource, setSource] = useState(false);
  return (
    <section class="panel" aria-label={`Document ${document.name}`}>
      <header>
        <div>
          <h2>{document.name}</h2>
          <p class="hint">
            <Tag>{document.scope}</Tag> <bdi class="mono">{document.source}</bdi>
          </p>
        </div>
        <fieldset class="switch">
          <legend class="sr-only">Show</legend>
          <button type="button" aria-pressed={!isSource} onClick={() => setSource(false)}>
            Rules
          </button>
          <button type="button" aria-pressed={isSource} onClick={() => setSource(true)}>
            Source
          </button>
        </fieldset>
      </header>
      {isSource ? (
        <Source text={file?.text ?? documentText(document, rules)} isWhole={file !== undefined} ruleId={ruleId} />
      ) : (
        <Rules rules={rules} hits={hits} ruleId={ruleId} />
      )}
    </section>
  );
}

function useInView(selector: string | undefined): void {
  useEffect(() => {
    if (selector !== undefined) globalThis.document.querySelector(selector)?.scrollIntoView({ block: 'center' });
  }, [selector]);
}

type RulesProps = Pick<ViewProps, 'rules' | 'hits' | 'ruleId'>;

function Rules({ rules, hits, ruleId }: RulesProps) {
  useInView(ruleId === null ? undefined : '.rule[aria-current="true"]');
  const byRule = new Map(hits.map((each) => [`${each.policy} ${each.rule_id}`, each]));
  return (
    <ol class="rules">
      {rules.map((rule) => (
        <RuleRow
          key={rule.id}
          rule={rule}
          hit={byRule.get(`${rule.policy} ${rule.id}`)}
          isChosen={rule.id === ruleId}
        />
      ))}
    </ol>
  );
}

type RowProps = { readonly rule: Rule; readonly hit: RuleCount | undefined; readonly isChosen: boolean };

const WORD = { allow: 'allow', deny: 'deny', require_approval: 'pending' } as const;

function RuleRow({ rule, hit, isChosen }: RowProps) {
  const { id, policy, effect, actions, resources, when, reason, approval } = rule;
  const times = (hit?.allow ?? 0) + (hit?.deny ?? 0) + (hit?.pending ?? 0);
  return (
    <li class="rule" aria-current={isChosen}>
      <div class="rule-head">
        <span class={`state ${WORD[effect]}`}>{effect.replaceAll('_', ' ')}</span>
        <strong>{id}</strong>
        <a class="hint" href={`/audit${queryOf({ policy, rule_id: id })}`}>
          {count(times)} {times === 1 ? 'hit' : 'hits'} <span class="sr-only">of {id} in the audit log</span>
        </a>
      </div>
      {reason !== null && <p>{reason}</p>}
      <p class="mono patterns">
        <Patterns texts={actions} /> <span class="hint">on</span> <Patterns texts={resources} />
      </p>
      {when !== null && (
        <p class="mono">
          <span class="hint">when</span> {when}
        </p>
      )}
      {approval !== null && (
        <p class="hint">
          {approval.min > 1 ? `${approval.min} approvers` : 'one approver'}, within{' '}
          {Math.round(approval.expires_secs / 60)} min
          {approval.approvers.length > 0 && `, of ${approval.approvers.join(', ')}`}
        </p>
      )}
    </li>
  );
}

const Patterns = ({ texts }: { readonly texts: readonly string[] }) => (
  <>
    {texts.map((text) => (
      <code key={text} class="pattern">
        {text}
      </code>
    ))}
  </>
);

type SourceProps = { readonly text: string; readonly isWhole: boolean; readonly ruleId: string | null };

function Source({ text, isWhole, ruleId }: SourceProps) {
  const lines = text.replace(/\n$/, '').split('\n');
  const marked = ruleId === null ? -1 : lineOfRule(lines, ruleId);
  useInView(marked >= 0 ? '.source .marked' : undefined);
  return (
    <>
      {!isWhole && (
        <p class="hint pad">Written from the rules in force: comments and layout of the file are not kept.</p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <pre class="code source" tabIndex={0}>
        {lines.map((line, at) => (
          <span key={at} class={at === marked ? 'line marked' : 'line'}>
            <span class="line-number" aria-hidden="true">
              {at + 1}
            </span>
            {partsOfYaml(line).map(({ kind, text: part }, index) => (
              <span key={index} class={`yaml-${kind}`}>
                {part}
              </span>
            ))}
            {'\n'}
          </span>
        ))}
      </pre>
    </>
  );
}
