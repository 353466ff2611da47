/** The policies in force: their documents, rules and hits, the source, and a place to try a check. */
import type { PolicyDocument, PolicyList, Rule } from '../../base/api-types.ts';
import { count, dateTime, plural } from '../../base/format.ts';
import { Problem } from '../../base/request.ts';
import { call, can } from '../../session/session.ts';
import { readStanding, reloadError } from '../../standing/standing.ts';
import { ask } from '../../ui/dialog.tsx';
import { Ago, Empty, PageHead } from '../../ui/names.tsx';
import { notify } from '../../ui/notices.tsx';
import { readAll } from '../../ui/read.ts';
import { useResource } from '../../ui/resource.ts';
import { place } from '../../ui/router.ts';
import { type RuleCount, readStats } from '../overview/stats.ts';
import { DocumentView } from './document-view.tsx';
import { HistoryPanel } from './history.tsx';
import { policyPath } from './paths.ts';
import { type File, Playground } from './playground.tsx';
import { ShadowPanel } from './shadow.tsx';

const RENEW_MS = 15_000;

type InForce = {
  readonly list: PolicyList;
  readonly documents: readonly PolicyDocument[];
  readonly rules: readonly Rule[];
  /** As they were read; none from a gateway that does not keep them. */
  readonly files: readonly File[];
};

const isUnknown = (problem: unknown): boolean => problem instanceof Problem && [403, 404].includes(problem.status);

async function readFiles(version: string): Promise<readonly File[]> {
  try {
    return (await call('GET', `/api/v1/policies/versions/${encodeURIComponent(version)}`)).files;
  } catch (problem) {
    if (!isUnknown(problem)) throw problem;
    return [];
  }
}

async function readPolicies(): Promise<InForce> {
  const [list, documents, rules] = await Promise.all([
    call('GET', '/api/v1/policies?per_page=1') as Promise<PolicyList>,
    readAll<PolicyDocument>('/api/v1/policies', 'documents'),
    readAll<Rule>('/api/v1/policies/rules', 'rules'),
  ]);
  return { list, documents, rules, files: await readFiles(list.version) };
}

export function PoliciesPage() {
  const { query } = place.value;
  const { data, error, reload } = useResource(`policies ${reloadError.value?.at}`, readPolicies, { everyMs: RENEW_MS });
  const hits = useResource('hits', async () => (await readStats('24h', '')).stats.top.rules, { everyMs: RENEW_MS });
  const chosen = data?.documents.find(({ name }) => name === query.get('policy')) ?? data?.documents[0];
  return (
    <div class="page wide">
      <PageHead title="Policies" note={data && <Version list={data.list} rules={data.rules} />}>
        <button type="button" onClick={toPlayground}>
          Try a check
        </button>
        {can('admin') && (
          <button type="button" class="solid" onClick={() => askReload(reload)}>
            Reload files
          </button>
        )}
      </PageHead>
      <FailedReload />
      <ShadowPanel />
      {data === undefined || chosen === undefined ? (
        <div class="panel">
          <Empty>
            {data === undefined
              ? error || 'Loading…'
              : 'No policies are in force, so every check is denied. Add policy files, then reload them.'}
          </Empty>
        </div>
      ) : (
        <div class="inbox">
          <Documents documents={data.documents} chosen={chosen} hits={hits.data ?? []} />
          <DocumentView
            key={chosen.name}
            document={chosen}
            rules={data.rules.filter(({ policy }) => policy === chosen.name)}
            hits={hits.data ?? []}
            file={fileOf(chosen, data.files)}
            ruleId={query.get('rule_id')}
          />
        </div>
      )}
      {data !== undefined && <HistoryPanel inForce={data.list.version} chosen={query.get('version')} />}
      {data !== undefined && <Playground version={data.list.version} files={data.files} />}
    </div>
  );
}

function toPlayground(): void {
  const target = document.getElementById('playground');
  target?.scrollIntoView({ block: 'start' });
  target?.querySelector('input')?.focus({ preventScroll: true });
}

const Version = ({ list, rules }: { readonly list: PolicyList; readonly rules: readonly Rule[] }) => (
  <>
    {plural(rules.length, 'rule')} in force since <Ago at={list.loaded_at} /> ({dateTime(list.loaded_at)}), version{' '}
    <code title={list.version}>{list.version.slice(0, 12)}</code>
  </>
);

/** A file's name may follow a folder, and an index if it has several documents. */
const fileOf = ({ source }: PolicyDocument, files: readonly File[]): File | undefined =>
  files.find(({ name }) => source === name || source.endsWith(`/${name}`) || source.startsWith(`${name}#`));

const hitsOf = (hits: readonly RuleCount[], policy: string): number =>
  hits
    .filter((each) => each.policy === policy)
    .reduce((sum, { allow, deny, pending }) => sum + allow + deny + pending, 0);

type DocumentsProps = {
  readonly documents: readonly PolicyDocument[];
  readonly chosen: PolicyDocument;
  readonly hits: readonly RuleCount[];
};

const Documents = ({ documents, chosen, hits }: DocumentsProps) => (
  <section class="panel inbox-list" aria-label="Documents">
    <ul>
      {documents.map((document) => (
        <li key={`${document.name} ${document.source}`}>
          <a href={policyPath(document.name, undefined)} aria-current={document.name === chosen.name}>
            <span class="inbox-line">
              <strong class="clip">{document.name}</strong>
              <span class="hint nowrap">{plural(document.rule_count, 'rule')}</span>
            </span>
            <span class="inbox-line hint">
              <bdi class="clip">{document.scope}</bdi>
              <span class="nowrap">{count(hitsOf(hits, document.name))} hits</span>
            </span>
          </a>
        </li>
      ))}
    </ul>
  </section>
);

/** It is shown until a reload succeeds. */
function FailedReload() {
  const failed = reloadError.value;
  if (failed === undefined) return null;
  const problems = failed.problems ?? [failed.reason];
  return (
    <div class="panel failed-reload" role="alert">
      <h2>Not reloaded: the previous policies stay in force</h2>
      <ul class="mono">
        {problems.map((problem) => (
          <li key={problem}>{problem}</li>
        ))}
      </ul>
      <p class="hint">
        <Ago at={failed.at} />
        {failed.by !== undefined && ` by ${failed.by}`}
      </p>
    </div>
  );
}

const askReload = (reload: () => Promise<void>): void =>
  ask({
    title: 'Reload the policy files?',
    text: 'The gateway reads them again. With a mistake in one, the set in force stays.',
    confirm: 'Reload',
    isHarmless: true,
    onConfirm: async () => {
      try {
        const { changed, documents, warnings } = await call('POST', '/api/v1/policies/reload');
        notify(
          changed
            ? `Policies reloaded: ${plural(documents, 'document')} in force.${warnings.length > 0 ? ` ${plural(warnings.length, 'warning')}: ${warnings[0]}` : ''}`
            : 'Policies reloaded: nothing has changed.',
        );
      } finally {
        void readStanding(['policy']);
        void reload();
      }
    },
  });
