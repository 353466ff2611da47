/** The API's answers by short names; their shapes are generated from docs/openapi.json. */
import type { components } from './schema.d.ts';

type Schemas = components['schemas'];

export type OpRecord = Schemas['GetOpsAnswer']['ops'][number];
export type Approval = Schemas['GetApprovalsAnswer']['approvals'][number];
export type Halt = Schemas['GetHaltsAnswer']['halts'][number];
export type AuditEntry = Schemas['GetLogsAnswer']['entries'][number];
export type Agent = Schemas['GetAgentsAnswer']['agents'][number];
export type TreeOrg = Schemas['GetTopologyTreeAnswer']['orgs'][number];
export type TreeNode = Agent & { readonly children: readonly TreeNode[]; readonly truncated: boolean };
export type Lineage = Schemas['GetTopologyLineageAgentIdAnswer']['lineages'][number];
export type TopologyStats = Schemas['GetTopologyStatsAnswer'];
export type Budget = Schemas['GetBudgetsAnswer']['budgets'][number];
export type LimitStatus = Schemas['GetLimitsAnswer']['limits'][number];
export type ApiKey = Schemas['GetIamApiKeysAnswer']['api_keys'][number];
export type Account = Schemas['GetAccountsAnswer']['accounts'][number];
export type Invite = Schemas['GetAuthInvitesAnswer']['invites'][number];
export type Webhook = Schemas['GetWebhooksAnswer']['webhooks'][number];
export type Member = Schemas['GetClusterAnswer']['members'][number];
export type PolicyList = Schemas['GetPoliciesAnswer'];
export type PolicyDocument = PolicyList['documents'][number];
export type Rule = Schemas['GetPoliciesRulesAnswer']['rules'][number];
export type PolicyVersion = Schemas['GetPoliciesVersionsAnswer']['versions'][number];
export type PolicyChange = Schemas['GetPoliciesDiffAnswer']['changes'][number];
export type PolicyShadow = Schemas['GetPoliciesShadowAnswer'];
export type Explanation = Schemas['PostPoliciesExplainAnswer'];
export type Stats = Schemas['GetStatsAnswer'];
export type Change = Schemas['GetChangesAnswer']['changes'][number];
export type Readiness = Schemas['GetReadyzRootAnswer'];
export type Methods = Schemas['GetAuthMethodsAnswer'];
export type Scope = ApiKey['scopes'][number];
export type AgentName = { readonly org_id: string | null; readonly team_id: string; readonly agent_id: string };
