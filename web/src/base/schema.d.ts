/** Generated from docs/openapi.json: npm run docs */
export interface paths {
    "/api/v1/auth/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchanges an API key for a scoped access token
         * @description Needs no scope.
         */
        post: operations["post_auth_token"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/iam/api-keys/self": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows the API key of the caller
         * @description Needs the `read` scope.
         */
        get: operations["get_iam_api_keys_self"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/iam/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists API keys, newest first
         * @description Needs the `admin` scope.
         */
        get: operations["get_iam_api_keys"];
        put?: never;
        /**
         * Creates an API key and shows it once
         * @description Needs the `admin` scope.
         */
        post: operations["post_iam_api_keys"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/iam/api-keys/{id}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revokes an API key, every token minted from it, and the keys and webhooks that it made
         * @description Needs the `admin` scope.
         */
        post: operations["post_iam_api_keys_id_revoke"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/iam/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists API keys, newest first
         * @description Needs the `admin` scope.
         */
        get: operations["get_iam_api_keys_root"];
        put?: never;
        /**
         * Creates an API key and shows it once
         * @description Needs the `admin` scope.
         */
        post: operations["post_iam_api_keys_root"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/iam/api-keys/{id}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revokes an API key, every token minted from it, and the keys and webhooks that it made
         * @description Needs the `admin` scope.
         */
        post: operations["post_iam_api_keys_id_revoke_root"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/iam/signing-keys/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotates the key that signs access tokens; the previous key still verifies
         * @description Needs the `admin` scope.
         */
        post: operations["post_iam_signing_keys_rotate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the public keys that verify access tokens
         * @description Needs no scope.
         */
        get: operations["get_well_known_jwks_json_root"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/methods": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the ways to sign in
         * @description Needs no scope.
         */
        get: operations["get_auth_methods"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/register": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Registers the first account, or any account if registration is open
         * @description Needs no scope.
         */
        post: operations["post_auth_register"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Signs in with e-mail and password
         * @description Needs no scope.
         */
        post: operations["post_auth_login"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchanges the refresh cookie for a new access token
         * @description Needs no scope.
         */
        post: operations["post_auth_refresh"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ends the session of the refresh cookie
         * @description Needs no scope.
         */
        post: operations["post_auth_logout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/invite": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Creates an invite and shows its token once
         * @description Needs the `admin` scope.
         */
        post: operations["post_auth_invite"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/invite/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Accepts an invite: creates the account and sets its password
         * @description Needs no scope.
         */
        post: operations["post_auth_invite_accept"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/invites": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists open invites
         * @description Needs the `admin` scope.
         */
        get: operations["get_auth_invites"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/invites/{id}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revokes an open invite
         * @description Needs the `admin` scope.
         */
        post: operations["post_auth_invites_id_revoke"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/password/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Requests a password reset e-mail
         * @description Needs no scope.
         */
        post: operations["post_auth_password_reset"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/password/reset/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sets a new password with a reset token
         * @description Needs no scope.
         */
        post: operations["post_auth_password_reset_confirm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows the account of the caller
         * @description Needs the `read` scope.
         */
        get: operations["get_auth_me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/sessions/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Signs the caller out everywhere
         * @description Needs the `read` scope.
         */
        post: operations["post_auth_sessions_revoke"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists accounts
         * @description Needs the `admin` scope.
         */
        get: operations["get_accounts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows an account
         * @description Needs the `admin` scope.
         */
        get: operations["get_accounts_id"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts/{id}/role": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Changes the role of an account; API keys that it made and may not hold any more end
         * @description Needs the `admin` scope.
         */
        post: operations["post_accounts_id_role"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts/{id}/disable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Disables an account; API keys that it made end
         * @description Needs the `admin` scope.
         */
        post: operations["post_accounts_id_disable"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts/{id}/enable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Enables a disabled account
         * @description Needs the `admin` scope.
         */
        post: operations["post_accounts_id_enable"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts/{id}/unlock": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Lifts the lock that failed sign-ins have put on an account
         * @description Needs the `admin` scope.
         */
        post: operations["post_accounts_id_unlock"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts/{id}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes a link with which somebody sets a new password for the account; shown once
         * @description Needs the `admin` scope.
         */
        post: operations["post_accounts_id_reset"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accounts/{id}/sessions/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Signs an account out everywhere
         * @description Needs the `admin` scope.
         */
        post: operations["post_accounts_id_sessions_revoke"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/ops": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists operations in flight and recently ended ones
         * @description Needs the `read` scope.
         */
        get: operations["get_ops"];
        put?: never;
        /**
         * Registers an operation
         * @description Needs the `write` scope.
         */
        post: operations["post_ops"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/ops/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows an operation
         * @description Needs the `read` scope.
         */
        get: operations["get_ops_id"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/ops/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pauses a running operation
         * @description Needs the `write` scope.
         */
        post: operations["post_ops_id_pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/ops/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resumes a paused operation
         * @description Needs the `write` scope.
         */
        post: operations["post_ops_id_resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/ops/{id}/terminate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Terminates an operation
         * @description Needs the `write` scope.
         */
        post: operations["post_ops_id_terminate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/ops/{id}/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Completes a running operation
         * @description Needs the `write` scope.
         */
        post: operations["post_ops_id_complete"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists registered agents
         * @description Needs the `read` scope.
         */
        get: operations["get_agents"];
        put?: never;
        /**
         * Registers an agent, or rotates its token
         * @description Needs the `write` scope.
         */
        post: operations["post_agents"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/self": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows the owner of the caller's token; 404 for any credential but an agent's own token
         * @description Needs the `read` scope.
         */
        get: operations["get_agents_self"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/self/refusals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Records a refusal on the side of the agent, without a check
         * @description Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.
         */
        post: operations["post_agents_self_refusals"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{org}/{team}/{agent}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Deregisters an agent
         * @description Needs the `write` scope.
         */
        delete: operations["delete_agents_org_team_agent"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Records the spending of an agent
         * @description Needs the `write` scope.
         */
        post: operations["post_usage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/budgets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows spend, reservations and caps, widest tier first
         * @description Needs the `read` scope.
         */
        get: operations["get_budgets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows what limits have counted, the fullest first
         * @description Needs the `read` scope.
         */
        get: operations["get_limits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/prices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows the token prices of a model
         * @description Needs the `read` scope.
         */
        get: operations["get_prices"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/halts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists halts: those in force, then those released, each newest first
         * @description Needs the `read` scope.
         */
        get: operations["get_halts"];
        put?: never;
        /**
         * Stops everything in a scope, until the halt is released
         * @description Needs the `admin` scope.
         */
        post: operations["post_halts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/halts/{id}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Releases a halt, and resumes the operations it had paused
         * @description Needs the `admin` scope.
         */
        post: operations["post_halts_id_release"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/approvals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists approvals, newest first
         * @description Needs the `read` scope.
         */
        get: operations["get_approvals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/approvals/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows an approval; with wait, as soon as it is decided
         * @description Needs the `read` scope.
         */
        get: operations["get_approvals_id"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/approvals/{id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approves the request of an agent
         * @description Needs the `read` scope.
         */
        post: operations["post_approvals_id_approve"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/approvals/{id}/deny": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Denies the request of an agent
         * @description Needs the `read` scope.
         */
        post: operations["post_approvals_id_deny"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/approvals/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Withdraws a request for an approval that is not used yet
         * @description Needs the `write` scope.
         */
        post: operations["post_approvals_id_cancel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists webhooks, newest first
         * @description Needs the `admin` scope.
         */
        get: operations["get_webhooks"];
        put?: never;
        /**
         * Creates a webhook and shows its secret once
         * @description Needs the `admin` scope.
         */
        post: operations["post_webhooks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows a webhook, and whether its calls arrive
         * @description Needs the `admin` scope.
         */
        get: operations["get_webhooks_id"];
        put?: never;
        post?: never;
        /**
         * Deletes a webhook and its waiting messages
         * @description Needs the `admin` scope.
         */
        delete: operations["delete_webhooks_id"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{id}/take-over": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes the caller the maker of a webhook, which no longer ends with who made it
         * @description Needs the `admin` scope.
         */
        post: operations["post_webhooks_id_take_over"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends a test message
         * @description Needs the `admin` scope.
         */
        post: operations["post_webhooks_id_test"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows the policy documents in force
         * @description Needs the `read` scope.
         */
        get: operations["get_policies"];
        put?: never;
        /**
         * Publishes policies to all gateways of a cluster, all or none; 404 for a gateway outside one
         * @description Needs the `admin` scope.
         */
        post: operations["post_policies"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the rules in force, in the order in which a check goes through them
         * @description Needs the `read` scope.
         */
        get: operations["get_policies_rules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Explains the decision of the policies on a check, the result of each rule, and what would overrule them; records nothing
         * @description Needs the `read` scope.
         */
        post: operations["post_policies_explain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/reload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reloads the policy files, all or none; 409 in a cluster
         * @description Needs the `admin` scope.
         */
        post: operations["post_policies_reload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the sets of policies that were in force, newest first
         * @description Needs the `read` scope.
         */
        get: operations["get_policies_versions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/versions/{version}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows a set of policies with its files
         * @description Needs the `read` scope.
         */
        get: operations["get_policies_versions_version"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compares two sets of policies, rule by rule
         * @description Needs the `read` scope.
         */
        get: operations["get_policies_diff"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/shadow": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows the shadow, and the checks it decides differently
         * @description Needs the `read` scope.
         */
        get: operations["get_policies_shadow"];
        /**
         * Has a second set of policies decide beside the one in force, without effect
         * @description Needs the `admin` scope.
         */
        put: operations["put_policies_shadow"];
        post?: never;
        /**
         * Ends the shadow
         * @description Needs the `admin` scope.
         */
        delete: operations["delete_policies_shadow"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Decides recorded checks again by another set of policies, with progress
         * @description Needs the `admin` scope.
         */
        post: operations["post_policies_replay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/ws-ticket": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Issues a ticket that opens one stream without an Authorization header
         * @description Needs the `read` scope.
         */
        post: operations["post_auth_ws_ticket"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Opens the live stream of events (WebSocket)
         * @description Needs the `read` scope.
         */
        get: operations["get_stream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists audit entries, newest first
         * @description Needs the `read` scope.
         */
        get: operations["get_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/logs/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Streams all matching audit entries, newest first
         * @description Needs the `read` scope.
         */
        get: operations["get_logs_export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists changes made by people and files, newest first
         * @description Needs the `read` scope.
         */
        get: operations["get_changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/witness": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Keeps a checkpoint of another audit log in this one; 200 if it was known
         * @description Needs the `write` scope.
         */
        post: operations["post_audit_witness"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/sinks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the sinks of the audit log, and how far each is
         * @description Needs the `read` scope.
         */
        get: operations["get_audit_sinks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/sinks/{name}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends a message to a sink that is no entry
         * @description Needs the `admin` scope.
         */
        post: operations["post_audit_sinks_name_test"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/sinks/{name}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends a sink everything from an entry on
         * @description Needs the `admin` scope.
         */
        post: operations["post_audit_sinks_name_replay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the gateways of the cluster; 404 for a gateway outside one
         * @description Needs the `read` scope.
         */
        get: operations["get_cluster"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/cluster/forget": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Forgets a gateway that will not return
         * @description Needs the `admin` scope.
         */
        post: operations["post_cluster_forget"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Counts checks, denies and spend over the last 15 minutes to the last 30 days
         * @description Needs the `read` scope.
         */
        get: operations["get_stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/topology/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Counts orgs, teams and agents, and lists the agents
         * @description Needs the `read` scope.
         */
        get: operations["get_topology_overview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/topology/tree": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows agents in a tree, below their org, team and parent
         * @description Needs the `read` scope.
         */
        get: operations["get_topology_tree"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/topology/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Counts operations and agents per org, or per team of one org
         * @description Needs the `read` scope.
         */
        get: operations["get_topology_stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/topology/team/{team_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows the teams of this name and their agents
         * @description Needs the `read` scope.
         */
        get: operations["get_topology_team_team_id"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/topology/lineage/{agent_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows ancestors and descendants of the agents of this name
         * @description Needs the `read` scope.
         */
        get: operations["get_topology_lineage_agent_id"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/access/v1/evaluation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Evaluates one access request (AuthZEN 1.0)
         * @description Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.
         */
        post: operations["post_access_v1_evaluation_root"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/access/v1/evaluations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Evaluates up to 1,000 access requests (AuthZEN 1.0)
         * @description Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.
         */
        post: operations["post_access_v1_evaluations_root"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/authzen-configuration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Locate the AuthZEN endpoints
         * @description Needs no scope.
         */
        get: operations["get_well_known_authzen_configuration_root"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/svc/authz/decision": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Decides about a tool's call or any other action (OPA Data API)
         * @description Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.
         */
        post: operations["post_v1_data_svc_authz_decision_root"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/hooks/claude-code": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answers a hook of Claude Code before or after a tool call
         * @description Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.
         */
        post: operations["post_hooks_claude_code"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/hooks/codex": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answers a hook of Codex before or after a tool call
         * @description Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.
         */
        post: operations["post_hooks_codex"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/hooks/cursor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answers a hook of Cursor before or after a tool call
         * @description Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.
         */
        post: operations["post_hooks_cursor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/hooks/copilot": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answers a hook of GitHub Copilot before or after a tool call
         * @description Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.
         */
        post: operations["post_hooks_copilot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/hooks/gemini": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answers a hook of Gemini CLI before or after a tool call
         * @description Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.
         */
        post: operations["post_hooks_gemini"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agent-hooks/intercept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answers an interceptor of AGENT-HOOKS-0.1 with its verdict
         * @description Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.
         */
        post: operations["post_v1_agent_hooks_intercept_root"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Liveness: answers as long as the process runs
         * @description Needs no scope.
         */
        get: operations["get_healthz_root"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Readiness for checks, and which parts are unavailable; 503 says why it is not ready
         * @description Needs no scope.
         */
        get: operations["get_readyz_root"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Metrics for Prometheus; needs no credential if the gateway listens only on loopback
         * @description Needs no scope.
         */
        get: operations["get_metrics_root"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * This description
         * @description Needs no scope.
         */
        get: operations["get_openapi_json_root"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/svc.governance.v1.PolicyService/CheckAction": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * CheckAction, over Connect
         * @description The method of `svc.governance.v1.PolicyService` as JSON (Connect, unary); see its .proto file for the fields.
         */
        post: operations["CheckAction"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/svc.governance.v1.PolicyService/BatchCheckActions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * BatchCheckActions, over Connect
         * @description The method of `svc.governance.v1.PolicyService` as JSON (Connect, unary); see its .proto file for the fields.
         */
        post: operations["BatchCheckActions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/svc.governance.v1.AgentService/RegisterAgent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * RegisterAgent, over Connect
         * @description The method of `svc.governance.v1.AgentService` as JSON (Connect, unary); see its .proto file for the fields.
         */
        post: operations["RegisterAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/svc.governance.v1.AgentService/DeregisterAgent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * DeregisterAgent, over Connect
         * @description The method of `svc.governance.v1.AgentService` as JSON (Connect, unary); see its .proto file for the fields.
         */
        post: operations["DeregisterAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/svc.governance.v1.AgentService/CompleteOp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * CompleteOp, over Connect
         * @description The method of `svc.governance.v1.AgentService` as JSON (Connect, unary); see its .proto file for the fields.
         */
        post: operations["CompleteOp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/svc.governance.v1.AgentService/RecordUsage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * RecordUsage, over Connect
         * @description The method of `svc.governance.v1.AgentService` as JSON (Connect, unary); see its .proto file for the fields.
         */
        post: operations["RecordUsage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/svc.governance.v1.AgentService/AckOpControl": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * AckOpControl, over Connect
         * @description The method of `svc.governance.v1.AgentService` as JSON (Connect, unary); see its .proto file for the fields.
         */
        post: operations["AckOpControl"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/svc.governance.v1.ApprovalService/WaitApproval": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * WaitApproval, over Connect
         * @description The method of `svc.governance.v1.ApprovalService` as JSON (Connect, unary); see its .proto file for the fields.
         */
        post: operations["WaitApproval"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/svc.governance.v1.ApprovalService/CancelApproval": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * CancelApproval, over Connect
         * @description The method of `svc.governance.v1.ApprovalService` as JSON (Connect, unary); see its .proto file for the fields.
         */
        post: operations["CancelApproval"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        TreeNode: {
            /** @description Empty for an agent without an org. */
            org_id: string;
            team_id: string;
            agent_id: string;
            /** @description `<org>/<team>/<agent>` */
            parent: string | null;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            registered_at: string;
            last_seen_at: string | null;
            active_ops: number;
            /** @description There are more descendants; request the lineage. */
            truncated: boolean;
            children: components["schemas"]["TreeNode"][];
        };
        ConnectError: {
            /** @description The code of gRPC in the spelling of Connect. */
            code: string;
            /** @description One sentence for people. */
            message: string;
        };
        CheckActionRequest: {
            agent?: components["schemas"]["AgentId"];
            credentialToken?: string;
            traceId?: string;
            spanId?: string;
            action?: string;
            resource?: string;
            attributes?: Record<string, never>;
            estimatedCostUsd?: number;
            caller?: components["schemas"]["AgentId"];
            dryRun?: boolean;
            correlationId?: string;
            supportedObligations?: string[];
            opHome?: string;
        };
        AgentId: {
            orgId?: string;
            teamId?: string;
            agentId?: string;
        };
        CheckActionResponse: {
            /** @enum {string} */
            decision?: "DECISION_UNSPECIFIED" | "DECISION_ALLOW" | "DECISION_DENY" | "DECISION_PENDING";
            reason?: string;
            policy?: string;
            ruleId?: string;
            opId?: string;
            /** @enum {string} */
            opState?: "OP_STATE_UNSPECIFIED" | "OP_STATE_PENDING" | "OP_STATE_RUNNING" | "OP_STATE_PAUSED" | "OP_STATE_COMPLETING" | "OP_STATE_TERMINATED";
            /** @description A whole number, as text. */
            auditId?: string;
            correlationId?: string;
            /** @enum {string} */
            cause?: "DECISION_CAUSE_UNSPECIFIED" | "DECISION_CAUSE_RULE" | "DECISION_CAUSE_NO_RULE" | "DECISION_CAUSE_CONDITION_ERROR" | "DECISION_CAUSE_BUDGET" | "DECISION_CAUSE_CREDENTIAL" | "DECISION_CAUSE_OPERATION_STATE" | "DECISION_CAUSE_HALT" | "DECISION_CAUSE_APPROVAL" | "DECISION_CAUSE_OBLIGATION" | "DECISION_CAUSE_UNRECORDED" | "DECISION_CAUSE_LIMIT";
            /** @enum {string} */
            tier?: "BUDGET_TIER_UNSPECIFIED" | "BUDGET_TIER_GLOBAL" | "BUDGET_TIER_ORG" | "BUDGET_TIER_TEAM" | "BUDGET_TIER_AGENT";
            /** @enum {string} */
            period?: "BUDGET_PERIOD_UNSPECIFIED" | "BUDGET_PERIOD_MONTHLY" | "BUDGET_PERIOD_DAILY";
            /** Format: date-time */
            resetsAt?: string;
            approvalId?: string;
            obligations?: components["schemas"]["Obligation"][];
            opHome?: string;
            remedy?: string;
        };
        Obligation: {
            id?: string;
            type?: string;
            properties?: Record<string, never>;
        };
        BatchCheckActionsRequest: {
            requests?: components["schemas"]["CheckActionRequest"][];
        };
        BatchCheckActionsResponse: {
            responses?: components["schemas"]["StreamCheckActionsResponse"][];
        };
        StreamCheckActionsResponse: {
            /** @enum {string} */
            decision?: "DECISION_UNSPECIFIED" | "DECISION_ALLOW" | "DECISION_DENY" | "DECISION_PENDING";
            reason?: string;
            policy?: string;
            ruleId?: string;
            opId?: string;
            /** @enum {string} */
            opState?: "OP_STATE_UNSPECIFIED" | "OP_STATE_PENDING" | "OP_STATE_RUNNING" | "OP_STATE_PAUSED" | "OP_STATE_COMPLETING" | "OP_STATE_TERMINATED";
            /** @description A whole number, as text. */
            auditId?: string;
            correlationId?: string;
            error?: components["schemas"]["CheckError"];
            /** @enum {string} */
            cause?: "DECISION_CAUSE_UNSPECIFIED" | "DECISION_CAUSE_RULE" | "DECISION_CAUSE_NO_RULE" | "DECISION_CAUSE_CONDITION_ERROR" | "DECISION_CAUSE_BUDGET" | "DECISION_CAUSE_CREDENTIAL" | "DECISION_CAUSE_OPERATION_STATE" | "DECISION_CAUSE_HALT" | "DECISION_CAUSE_APPROVAL" | "DECISION_CAUSE_OBLIGATION" | "DECISION_CAUSE_UNRECORDED" | "DECISION_CAUSE_LIMIT";
            /** @enum {string} */
            tier?: "BUDGET_TIER_UNSPECIFIED" | "BUDGET_TIER_GLOBAL" | "BUDGET_TIER_ORG" | "BUDGET_TIER_TEAM" | "BUDGET_TIER_AGENT";
            /** @enum {string} */
            period?: "BUDGET_PERIOD_UNSPECIFIED" | "BUDGET_PERIOD_MONTHLY" | "BUDGET_PERIOD_DAILY";
            /** Format: date-time */
            resetsAt?: string;
            approvalId?: string;
            obligations?: components["schemas"]["Obligation"][];
            opHome?: string;
            remedy?: string;
        };
        CheckError: {
            code?: string;
            message?: string;
            retryAfterSecs?: number;
        };
        RegisterAgentRequest: {
            agent?: components["schemas"]["AgentId"];
            credentialToken?: string;
            parent?: components["schemas"]["AgentId"];
        };
        RegisterAgentResponse: {
            agent?: components["schemas"]["AgentId"];
            credentialToken?: string;
            rotated?: boolean;
        };
        DeregisterAgentRequest: {
            agent?: components["schemas"]["AgentId"];
        };
        DeregisterAgentResponse: Record<string, never>;
        CompleteOpRequest: {
            agent?: components["schemas"]["AgentId"];
            credentialToken?: string;
            opId?: string;
            costUsd?: number;
            /** @enum {string} */
            outcome?: "OUTCOME_UNSPECIFIED" | "OUTCOME_SUCCESS" | "OUTCOME_FAILURE";
            error?: string;
            opHome?: string;
            model?: string;
            provider?: string;
            /** @description A whole number, as text. */
            inputTokens?: string;
            /** @description A whole number, as text. */
            outputTokens?: string;
            /** @description A whole number, as text. */
            cacheReadTokens?: string;
            /** @description A whole number, as text. */
            cacheWriteTokens?: string;
        };
        CompleteOpResponse: {
            opId?: string;
            /** @enum {string} */
            opState?: "OP_STATE_UNSPECIFIED" | "OP_STATE_PENDING" | "OP_STATE_RUNNING" | "OP_STATE_PAUSED" | "OP_STATE_COMPLETING" | "OP_STATE_TERMINATED";
            costUsd?: number;
        };
        RecordUsageRequest: {
            agent?: components["schemas"]["AgentId"];
            credentialToken?: string;
            costUsd?: number;
            opId?: string;
            usageId?: string;
            opHome?: string;
            model?: string;
            provider?: string;
            /** @description A whole number, as text. */
            inputTokens?: string;
            /** @description A whole number, as text. */
            outputTokens?: string;
            /** @description A whole number, as text. */
            cacheReadTokens?: string;
            /** @description A whole number, as text. */
            cacheWriteTokens?: string;
        };
        RecordUsageResponse: {
            /** @enum {string} */
            status?: "BUDGET_STATUS_UNSPECIFIED" | "BUDGET_STATUS_OK" | "BUDGET_STATUS_LIMIT_EXCEEDED";
            /** @enum {string} */
            tier?: "BUDGET_TIER_UNSPECIFIED" | "BUDGET_TIER_GLOBAL" | "BUDGET_TIER_ORG" | "BUDGET_TIER_TEAM" | "BUDGET_TIER_AGENT";
            /** @enum {string} */
            period?: "BUDGET_PERIOD_UNSPECIFIED" | "BUDGET_PERIOD_MONTHLY" | "BUDGET_PERIOD_DAILY";
            costUsd?: number;
        };
        AckOpControlRequest: {
            agent?: components["schemas"]["AgentId"];
            credentialToken?: string;
            opId?: string;
            /** @description A whole number, as text. */
            sequence?: string;
            opHome?: string;
        };
        AckOpControlResponse: Record<string, never>;
        WaitApprovalRequest: {
            agent?: components["schemas"]["AgentId"];
            credentialToken?: string;
            approvalId?: string;
        };
        WaitApprovalResponse: {
            approvalId?: string;
            /** @enum {string} */
            state?: "APPROVAL_STATE_UNSPECIFIED" | "APPROVAL_STATE_PENDING" | "APPROVAL_STATE_APPROVED" | "APPROVAL_STATE_DENIED" | "APPROVAL_STATE_EXPIRED" | "APPROVAL_STATE_CANCELLED" | "APPROVAL_STATE_USED";
            reason?: string;
            /** Format: date-time */
            expiresAt?: string;
        };
        CancelApprovalRequest: {
            agent?: components["schemas"]["AgentId"];
            credentialToken?: string;
            approvalId?: string;
        };
        CancelApprovalResponse: {
            approvalId?: string;
            /** @enum {string} */
            state?: "APPROVAL_STATE_UNSPECIFIED" | "APPROVAL_STATE_PENDING" | "APPROVAL_STATE_APPROVED" | "APPROVAL_STATE_DENIED" | "APPROVAL_STATE_EXPIRED" | "APPROVAL_STATE_CANCELLED" | "APPROVAL_STATE_USED";
        };
        Problem: {
            type: string;
            title: string;
            status: number;
            /** @description One sentence for people. */
            detail: string;
            /**
             * @description A stable code for programs.
             * @enum {string}
             */
            code: "invalid_argument" | "unauthenticated" | "insufficient_scope" | "org_forbidden" | "not_owner" | "own_request" | "not_approver" | "impersonation" | "registration_closed" | "role_forbidden" | "setup_required" | "foreign_origin" | "foreign_host" | "not_found" | "method_not_allowed" | "invalid_transition" | "email_taken" | "ambiguous" | "conflict" | "halted" | "policy_invalid" | "use_publish" | "payload_too_large" | "unsupported_media_type" | "upgrade_required" | "unknown_model" | "weak_password" | "invalid_invite" | "invalid_reset_token" | "account_locked" | "rate_limited" | "internal" | "account_store_unavailable" | "store_unreachable" | "unreachable_gateway" | "audit_unavailable" | "shutting_down" | "overloaded";
            /** @description With `invalid_argument`: the part of the request that is wrong. */
            field?: string;
            /**
             * @description With `insufficient_scope`.
             * @enum {string}
             */
            needed_scope?: "read" | "write" | "admin";
            /** @description With `invalid_transition` of an operation, and with `ambiguous`. */
            op_id?: string;
            /** @description With `invalid_transition` of an approval. */
            approval_id?: string;
            /**
             * @description With `invalid_transition`: the state of the operation or approval.
             * @enum {string}
             */
            from?: "pending" | "running" | "paused" | "completing" | "terminated" | "approved" | "denied" | "expired" | "cancelled" | "used";
            /**
             * @description With `invalid_transition`: the requested action.
             * @enum {string}
             */
            trigger?: "allow" | "pause" | "resume" | "complete" | "terminate" | "approve" | "deny" | "expire" | "cancel" | "use";
            /** @description With `ambiguous`: the orgs that have an operation of this id. */
            org_ids?: string[];
            /** @description With `policy_invalid`: each mistake and its file. */
            problems?: string[];
            /** @description Same as the header `Retry-After`. */
            retry_after_secs?: number;
        };
        PostAuthTokenRequest: {
            scopes?: ("read" | "write" | "admin")[] | null;
        };
        PostAuthTokenAnswer: {
            token: string;
            /** @description Unix seconds */
            expires_at: number;
            scopes: ("read" | "write" | "admin")[];
        };
        GetIamApiKeysSelfAnswer: {
            id: string;
            name: string;
            scopes: ("read" | "write" | "admin")[];
            org_id: string | null;
            expires_at: string | null;
        };
        PostIamApiKeysRequest: {
            name: string;
            scopes: ("read" | "write" | "admin")[];
            org_id?: string | null;
            expires_at?: string | null;
        };
        PostIamApiKeysAnswer: {
            /** @description Shown once. */
            key: string;
            id: string;
            name: string;
            hint: string;
            scopes: ("read" | "write" | "admin")[];
            org_id: string | null;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            created_at: string;
            created_by: string;
            expires_at: string | null;
            revoked_at: string | null;
            last_used_at: string | null;
        };
        GetIamApiKeysAnswer: {
            api_keys: {
                id: string;
                name: string;
                hint: string;
                scopes: ("read" | "write" | "admin")[];
                org_id: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
                created_by: string;
                expires_at: string | null;
                revoked_at: string | null;
                last_used_at: string | null;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        PostIamSigningKeysRotateAnswer: {
            kid: string;
        };
        GetWellKnownJwksJsonRootAnswer: {
            keys: ({
                kty: string;
                kid: string;
            } & {
                [key: string]: unknown;
            })[];
        };
        GetAuthMethodsAnswer: {
            methods: ("api_key" | "password")[];
            /**
             * @description Who may register without an invite. Absent without an account store.
             * @enum {string}
             */
            registration?: "first_account" | "open" | "closed";
            /**
             * @description Present while the first account needs a setup token or the admin key.
             * @constant
             */
            setup_required?: true;
            /** @description Whether a forgotten password can be reset by mail. Absent without an account store. */
            reset_by_mail?: boolean;
        };
        PostAuthRegisterRequest: {
            email: string;
            password: string;
            setup_token?: string | null;
        };
        PostAuthRegisterAnswer: {
            account: {
                id: string;
                email: string;
                /** @enum {string} */
                role: "owner" | "admin" | "developer" | "viewer";
                org_id: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
            };
        };
        PostAuthLoginRequest: {
            email: string;
            password: string;
            remember_me?: boolean | null;
        };
        PostAuthLoginAnswer: {
            access_token: string;
            /** @constant */
            token_type: "Bearer";
            expires_in: number;
            /** @description Unix seconds */
            expires_at: number;
            scopes: ("read" | "write" | "admin")[];
        };
        PostAuthInviteRequest: {
            email: string;
            /** @default developer */
            role: ("owner" | "admin" | "developer" | "viewer") | null;
            org_id?: string | null;
        };
        PostAuthInviteAnswer: {
            /** @description Shown once. */
            invite_token: string;
            email: string;
            /** @enum {string} */
            role: "owner" | "admin" | "developer" | "viewer";
            org_id: string | null;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            expires_at: string;
        };
        PostAuthInviteAcceptRequest: {
            invite_token: string;
            password: string;
        };
        GetAuthInvitesAnswer: {
            invites: {
                id: string;
                email: string;
                /** @enum {string} */
                role: "owner" | "admin" | "developer" | "viewer";
                org_id: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
                /** @description `key:<id>` or `account:<id>` */
                invited_by: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                expires_at: string;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        PostAuthPasswordResetRequest: {
            email: string;
        };
        PostAuthPasswordResetConfirmRequest: {
            reset_token: string;
            new_password: string;
        };
        GetAuthMeAnswer: {
            account: {
                id: string;
                email: string;
                /** @enum {string} */
                role: "owner" | "admin" | "developer" | "viewer";
                org_id: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
                disabled: boolean;
                last_login_at: string | null;
                /** @description End of the lock after too many failed sign-ins; null: not locked */
                locked_until: string | null;
            };
            scopes: ("read" | "write" | "admin")[];
        };
        GetAccountsAnswer: {
            accounts: {
                id: string;
                email: string;
                /** @enum {string} */
                role: "owner" | "admin" | "developer" | "viewer";
                org_id: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
                disabled: boolean;
                last_login_at: string | null;
                /** @description End of the lock after too many failed sign-ins; null: not locked */
                locked_until: string | null;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        GetAccountsIdAnswer: {
            account: {
                id: string;
                email: string;
                /** @enum {string} */
                role: "owner" | "admin" | "developer" | "viewer";
                org_id: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
                disabled: boolean;
                last_login_at: string | null;
                /** @description End of the lock after too many failed sign-ins; null: not locked */
                locked_until: string | null;
            };
        };
        PostAccountsIdRoleRequest: {
            /** @enum {string} */
            role: "owner" | "admin" | "developer" | "viewer";
        };
        PostAccountsIdRoleAnswer: {
            account: {
                id: string;
                email: string;
                /** @enum {string} */
                role: "owner" | "admin" | "developer" | "viewer";
                org_id: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
                disabled: boolean;
                last_login_at: string | null;
                /** @description End of the lock after too many failed sign-ins; null: not locked */
                locked_until: string | null;
            };
            /** @description API keys that it had made, and that have ended with this. */
            revoked_keys?: {
                id: string;
                name: string;
            }[];
            /** @description API keys that it had made, and that were kept with `cascade=false`. */
            kept_keys?: {
                id: string;
                name: string;
            }[];
            /** @description Webhooks that it had made, and that have ended with this. */
            deleted_webhooks?: {
                id: string;
                url: string;
            }[];
            /** @description Webhooks that it had made, kept with `cascade=false`. */
            kept_webhooks?: {
                id: string;
                url: string;
            }[];
        };
        PostAccountsIdResetAnswer: {
            /** @description Shown once; works once. */
            reset_token: string;
            /** @description Where to open the dashboard with it. */
            link: string;
            email: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            expires_at: string;
        };
        PostOpsRequest: {
            op_id?: string | null;
            trace_id?: string | null;
            span_id?: string | null;
            agent: {
                /** @default  */
                org_id: string | null;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                team_id: string;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                agent_id: string;
            };
        };
        PostOpsAnswer: {
            /** @description `<trace_id>:<span_id>` */
            op_id: string;
            /** @description Which gateway of a cluster has it. Absent: there is one only. */
            op_home?: string;
            /** @enum {string} */
            state: "pending" | "running" | "paused" | "completing" | "terminated";
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            registered_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            updated_at: string;
            agent: {
                /** @description Empty for an agent without an org. */
                org_id: string;
                team_id: string;
                agent_id: string;
            };
            /** @description Of the check that it began with; null if it was registered without one. */
            action: string | null;
            /** @description At most 256 characters of it, without secrets. */
            resource: string | null;
            policy: string | null;
            rule_id: string | null;
            /** @description Why it runs, waits or was denied. */
            reason: string | null;
            estimated_cost_usd: number;
            /** @description As recorded for this operation so far. */
            spent_usd: number;
            approval_id: string | null;
            /** @description The error that the agent reported. */
            error: string | null;
            /** @description Null while it runs or waits. */
            ended: ("completed" | "failed" | "denied" | "terminated" | "halted" | "expired") | null;
            /** @description When the agent acknowledged the last signal. */
            acknowledged_at: string | null;
        };
        GetOpsAnswer: {
            ops: {
                /** @description `<trace_id>:<span_id>` */
                op_id: string;
                /** @description Which gateway of a cluster has it. Absent: there is one only. */
                op_home?: string;
                /** @enum {string} */
                state: "pending" | "running" | "paused" | "completing" | "terminated";
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                registered_at: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                updated_at: string;
                agent: {
                    /** @description Empty for an agent without an org. */
                    org_id: string;
                    team_id: string;
                    agent_id: string;
                };
                /** @description Of the check that it began with; null if it was registered without one. */
                action: string | null;
                /** @description At most 256 characters of it, without secrets. */
                resource: string | null;
                policy: string | null;
                rule_id: string | null;
                /** @description Why it runs, waits or was denied. */
                reason: string | null;
                estimated_cost_usd: number;
                /** @description As recorded for this operation so far. */
                spent_usd: number;
                approval_id: string | null;
                /** @description The error that the agent reported. */
                error: string | null;
                /** @description Null while it runs or waits. */
                ended: ("completed" | "failed" | "denied" | "terminated" | "halted" | "expired") | null;
                /** @description When the agent acknowledged the last signal. */
                acknowledged_at: string | null;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
            /** @description In a cluster: the gateways that did not answer, so that their rows are missing. */
            incomplete?: string[];
        };
        GetOpsIdAnswer: {
            /** @description `<trace_id>:<span_id>` */
            op_id: string;
            /** @description Which gateway of a cluster has it. Absent: there is one only. */
            op_home?: string;
            /** @enum {string} */
            state: "pending" | "running" | "paused" | "completing" | "terminated";
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            registered_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            updated_at: string;
            agent: {
                /** @description Empty for an agent without an org. */
                org_id: string;
                team_id: string;
                agent_id: string;
            };
            /** @description Of the check that it began with; null if it was registered without one. */
            action: string | null;
            /** @description At most 256 characters of it, without secrets. */
            resource: string | null;
            policy: string | null;
            rule_id: string | null;
            /** @description Why it runs, waits or was denied. */
            reason: string | null;
            estimated_cost_usd: number;
            /** @description As recorded for this operation so far. */
            spent_usd: number;
            approval_id: string | null;
            /** @description The error that the agent reported. */
            error: string | null;
            /** @description Null while it runs or waits. */
            ended: ("completed" | "failed" | "denied" | "terminated" | "halted" | "expired") | null;
            /** @description When the agent acknowledged the last signal. */
            acknowledged_at: string | null;
        } | {
            ops: {
                /** @description `<trace_id>:<span_id>` */
                op_id: string;
                /** @description Which gateway of a cluster has it. Absent: there is one only. */
                op_home?: string;
                /** @enum {string} */
                state: "pending" | "running" | "paused" | "completing" | "terminated";
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                registered_at: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                updated_at: string;
                agent: {
                    /** @description Empty for an agent without an org. */
                    org_id: string;
                    team_id: string;
                    agent_id: string;
                };
                /** @description Of the check that it began with; null if it was registered without one. */
                action: string | null;
                /** @description At most 256 characters of it, without secrets. */
                resource: string | null;
                policy: string | null;
                rule_id: string | null;
                /** @description Why it runs, waits or was denied. */
                reason: string | null;
                estimated_cost_usd: number;
                /** @description As recorded for this operation so far. */
                spent_usd: number;
                approval_id: string | null;
                /** @description The error that the agent reported. */
                error: string | null;
                /** @description Null while it runs or waits. */
                ended: ("completed" | "failed" | "denied" | "terminated" | "halted" | "expired") | null;
                /** @description When the agent acknowledged the last signal. */
                acknowledged_at: string | null;
            }[];
        };
        PostOpsIdCompleteRequest: {
            cost_usd?: number | null;
            model?: string | null;
            provider?: string | null;
            input_tokens?: number | null;
            output_tokens?: number | null;
            cache_read_tokens?: number | null;
            cache_write_tokens?: number | null;
            outcome?: ("OUTCOME_SUCCESS" | "OUTCOME_FAILURE") | null;
            error?: string | null;
        };
        PostOpsIdCompleteAnswer: {
            /** @description `<trace_id>:<span_id>` */
            op_id: string;
            /** @description Which gateway of a cluster has it. Absent: there is one only. */
            op_home?: string;
            /** @enum {string} */
            state: "pending" | "running" | "paused" | "completing" | "terminated";
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            registered_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            updated_at: string;
            agent: {
                /** @description Empty for an agent without an org. */
                org_id: string;
                team_id: string;
                agent_id: string;
            };
            /** @description Of the check that it began with; null if it was registered without one. */
            action: string | null;
            /** @description At most 256 characters of it, without secrets. */
            resource: string | null;
            policy: string | null;
            rule_id: string | null;
            /** @description Why it runs, waits or was denied. */
            reason: string | null;
            estimated_cost_usd: number;
            /** @description As recorded for this operation so far. */
            spent_usd: number;
            approval_id: string | null;
            /** @description The error that the agent reported. */
            error: string | null;
            /** @description Null while it runs or waits. */
            ended: ("completed" | "failed" | "denied" | "terminated" | "halted" | "expired") | null;
            /** @description When the agent acknowledged the last signal. */
            acknowledged_at: string | null;
            /** @description The price of the tokens; absent without tokens. */
            cost_usd?: number;
        };
        PostAgentsRequest: {
            agent: {
                /** @default  */
                org_id: string | null;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                team_id: string;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                agent_id: string;
            };
            credential_token?: string | null;
            parent?: {
                /** @default  */
                org_id: string | null;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                team_id: string;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                agent_id: string;
            } | null;
        };
        PostAgentsAnswer: {
            agent: {
                /** @description Empty for an agent without an org. */
                org_id: string;
                team_id: string;
                agent_id: string;
                /** @description `<org>/<team>/<agent>` */
                parent: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                registered_at: string;
                last_seen_at: string | null;
                active_ops: number;
            };
            rotated: boolean;
            /** @description Shown once, if the gateway generated it. */
            credential_token?: string;
        };
        GetAgentsAnswer: {
            agents: {
                /** @description Empty for an agent without an org. */
                org_id: string;
                team_id: string;
                agent_id: string;
                /** @description `<org>/<team>/<agent>` */
                parent: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                registered_at: string;
                last_seen_at: string | null;
                active_ops: number;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        GetAgentsSelfAnswer: {
            agent: {
                /** @description Empty for an agent without an org. */
                org_id: string;
                team_id: string;
                agent_id: string;
            };
        };
        PostAgentsSelfRefusalsRequest: {
            /** @description The requested action, as far as it could be read. */
            action: string;
            resource: string;
            /** @description Why it is refused. */
            reason: string;
        };
        PostAgentsSelfRefusalsAnswer: {
            reason: string;
            /** @description The entry; null if the agent is not known any more. */
            audit_id: number | null;
        };
        PostUsageRequest: {
            agent: {
                /** @default  */
                org_id: string | null;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                team_id: string;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                agent_id: string;
            };
            cost_usd?: number | null;
            model?: string | null;
            provider?: string | null;
            input_tokens?: number | null;
            output_tokens?: number | null;
            cache_read_tokens?: number | null;
            cache_write_tokens?: number | null;
            op_id?: string | null;
            usage_id?: string | null;
        };
        PostUsageAnswer: {
            /** @constant */
            status: "ok";
            /** @description The price of the tokens; absent without tokens. */
            cost_usd?: number;
        } | {
            /** @constant */
            status: "limit_exceeded";
            /** @enum {string} */
            tier: "global" | "org" | "team" | "agent";
            /** @enum {string} */
            period: "monthly" | "daily";
            /** @description The price of the tokens; absent without tokens. */
            cost_usd?: number;
        };
        GetBudgetsAnswer: {
            budgets: {
                /** @enum {string} */
                tier: "global" | "org" | "team" | "agent";
                org_id: string | null;
                team_id: string | null;
                agent_id: string | null;
                daily: {
                    spent_usd: number;
                    limit_usd: number | null;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    period_start: string;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    reset: string;
                };
                monthly: {
                    spent_usd: number;
                    limit_usd: number | null;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    period_start: string;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    reset: string;
                };
                reserved_usd: number;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        GetLimitsAnswer: {
            limits: {
                policy: string;
                id: string;
                /** @enum {string} */
                per: "session" | "lineage" | "agent" | "team" | "org";
                /** @description Whose use it counts: `<trace_id>`, `<org>/<team>/<agent>`, `<org>/<team>` or `<org>`. */
                key: string;
                /** @enum {string} */
                unit: "calls" | "usd" | "tokens";
                used: number;
                /** @description The maximum in force, with what was added. */
                max: number;
                org_id: string | null;
                /** @description Of money: estimates of operations that run. */
                reserved: number;
                /** @description What approvals have added to the maximum. */
                raised: number;
                /** @description When some of it leaves the span; null: nothing will. */
                resets_at: string | null;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        GetPricesAnswer: {
            model: string;
            provider: string | null;
            input_mtok: (number | {
                base: number;
                tiers: {
                    start: number;
                    price: number;
                }[];
            }) | null;
            output_mtok: (number | {
                base: number;
                tiers: {
                    start: number;
                    price: number;
                }[];
            }) | null;
            cache_read_mtok: (number | {
                base: number;
                tiers: {
                    start: number;
                    price: number;
                }[];
            }) | null;
            cache_write_mtok: (number | {
                base: number;
                tiers: {
                    start: number;
                    price: number;
                }[];
            }) | null;
            /**
             * @description The file at SVC_PRICES_PATH, the table in the package, or the highest of both.
             * @enum {string}
             */
            source: "file" | "table" | "highest";
        };
        PostHaltsRequest: {
            /**
             * @description global, org:<id>, team:<org>/<team>, agent:<org>/<team>/<agent> or lineage:<org>/<team>/<agent>
             * @example org:acme
             */
            scope: string;
            /** @description must be a text of 1 to 1000 characters */
            reason: string;
            /** @default terminate */
            mode: ("terminate" | "pause") | null;
            /**
             * @default [
             *       "*"
             *     ]
             */
            actions: string[] | null;
            expires_at?: string | null;
        };
        PostHaltsAnswer: {
            halt: {
                id: string;
                /**
                 * @example global
                 * @example org:acme
                 * @example lineage:acme/search/crawler
                 */
                scope: string;
                /** @enum {string} */
                mode: "terminate" | "pause";
                actions: string[];
                reason: string;
                created_by: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
                expires_at: string | null;
                released_at: string | null;
                released_by: string | null;
                release_reason: string | null;
            };
            ops_affected: number;
            /** @description How many registered agents it covers. */
            agents_matched: number;
            /** @description If no known agent is in the scope: the most similar scope, if there is one. */
            nearest_scope: string | null;
        };
        GetHaltsAnswer: {
            halts: {
                id: string;
                /**
                 * @example global
                 * @example org:acme
                 * @example lineage:acme/search/crawler
                 */
                scope: string;
                /** @enum {string} */
                mode: "terminate" | "pause";
                actions: string[];
                reason: string;
                created_by: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
                expires_at: string | null;
                released_at: string | null;
                released_by: string | null;
                release_reason: string | null;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        PostHaltsIdReleaseRequest: {
            /** @description must be a text of 1 to 1000 characters */
            reason: string;
        };
        PostHaltsIdReleaseAnswer: {
            halt: {
                id: string;
                /**
                 * @example global
                 * @example org:acme
                 * @example lineage:acme/search/crawler
                 */
                scope: string;
                /** @enum {string} */
                mode: "terminate" | "pause";
                actions: string[];
                reason: string;
                created_by: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
                expires_at: string | null;
                released_at: string | null;
                released_by: string | null;
                release_reason: string | null;
            };
        };
        GetApprovalsAnswer: {
            approvals: {
                id: string;
                /**
                 * @description Whether an action is to be allowed, or a limit raised.
                 * @enum {string}
                 */
                kind: "action" | "limit";
                /** @enum {string} */
                state: "pending" | "approved" | "denied" | "expired" | "cancelled" | "used";
                /** @description SHA-256 of the canonical arguments it is bound to, in lower-case hexadecimal. */
                digest: string;
                agent: {
                    org_id: string;
                    team_id: string;
                    agent_id: string;
                };
                op_id: string | null;
                /** @description Every operation that waits for it. */
                op_ids: string[];
                action: string;
                resource: string;
                /** @description Without secrets, as in the audit log. */
                attributes: unknown;
                estimated_cost_usd: number;
                policy: string;
                rule_id: string;
                reason: string;
                /** @description Of kind `limit`: what it is about. */
                limit: {
                    policy: string;
                    id: string;
                    /** @enum {string} */
                    per: "session" | "lineage" | "agent" | "team" | "org";
                    /** @description Whose use it counts: `<trace_id>`, `<org>/<team>/<agent>`, `<org>/<team>` or `<org>`. */
                    key: string;
                    /** @enum {string} */
                    unit: "calls" | "usd" | "tokens";
                    used: number;
                    /** @description The maximum in force, with what was added. */
                    max: number;
                } | null;
                /** @description By how much the limit is raised. */
                step: number | null;
                requested_by: string[];
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                requested_at: string;
                /**
                 * Format: date-time
                 * @description Until when it can be decided or, once approved, used.
                 */
                expires_at: string;
                /** @description Since when a halt stops its clock. */
                frozen_at: string | null;
                /** @description How many different approvers it takes. */
                min: number;
                /** @description Empty: every credential with admin scope. */
                approvers: string[];
                /** @description Null: for one use. */
                valid_secs: number | null;
                decisions: {
                    /** @enum {string} */
                    decision: "approve" | "deny";
                    by: string;
                    reason: string;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    at: string;
                }[];
                used_by: string[];
                cancel_reason: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                changed_at: string;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        GetApprovalsIdAnswer: {
            approval: {
                id: string;
                /**
                 * @description Whether an action is to be allowed, or a limit raised.
                 * @enum {string}
                 */
                kind: "action" | "limit";
                /** @enum {string} */
                state: "pending" | "approved" | "denied" | "expired" | "cancelled" | "used";
                /** @description SHA-256 of the canonical arguments it is bound to, in lower-case hexadecimal. */
                digest: string;
                agent: {
                    org_id: string;
                    team_id: string;
                    agent_id: string;
                };
                op_id: string | null;
                /** @description Every operation that waits for it. */
                op_ids: string[];
                action: string;
                resource: string;
                /** @description Without secrets, as in the audit log. */
                attributes: unknown;
                estimated_cost_usd: number;
                policy: string;
                rule_id: string;
                reason: string;
                /** @description Of kind `limit`: what it is about. */
                limit: {
                    policy: string;
                    id: string;
                    /** @enum {string} */
                    per: "session" | "lineage" | "agent" | "team" | "org";
                    /** @description Whose use it counts: `<trace_id>`, `<org>/<team>/<agent>`, `<org>/<team>` or `<org>`. */
                    key: string;
                    /** @enum {string} */
                    unit: "calls" | "usd" | "tokens";
                    used: number;
                    /** @description The maximum in force, with what was added. */
                    max: number;
                } | null;
                /** @description By how much the limit is raised. */
                step: number | null;
                requested_by: string[];
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                requested_at: string;
                /**
                 * Format: date-time
                 * @description Until when it can be decided or, once approved, used.
                 */
                expires_at: string;
                /** @description Since when a halt stops its clock. */
                frozen_at: string | null;
                /** @description How many different approvers it takes. */
                min: number;
                /** @description Empty: every credential with admin scope. */
                approvers: string[];
                /** @description Null: for one use. */
                valid_secs: number | null;
                decisions: {
                    /** @enum {string} */
                    decision: "approve" | "deny";
                    by: string;
                    reason: string;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    at: string;
                }[];
                used_by: string[];
                cancel_reason: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                changed_at: string;
            };
        };
        PostWebhooksRequest: {
            /** @example https://hooks.example.com/svc */
            url: string;
            events: ("approval.requested" | "approval.decided" | "approval.expired" | "halt.created" | "halt.released" | "budget.threshold" | "budget.exceeded" | "violation" | "policy.reload_failed" | "audit.unwritable" | "webhook.disabled")[];
            org_id?: string | null;
        };
        PostWebhooksAnswer: {
            id: string;
            url: string;
            events: ("approval.requested" | "approval.decided" | "approval.expired" | "halt.created" | "halt.released" | "budget.threshold" | "budget.exceeded" | "violation" | "policy.reload_failed" | "audit.unwritable" | "webhook.disabled")[];
            /** @description The org whose events it gets; null: all orgs. */
            org_id: string | null;
            created_by: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            created_at: string;
            /** @description Messages that have not arrived yet. */
            waiting: number;
            /** @description Messages it missed, because too many waited or it was disabled. */
            dropped: number;
            /** @description Since when its calls fail; null: the last one arrived. */
            failing_since: string | null;
            last_error: string | null;
            /** @description When the gateway gave it up, after a day of failed calls. */
            disabled_at: string | null;
            /**
             * @description Signs its calls. Shown once.
             * @example whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD
             */
            secret: string;
        };
        GetWebhooksAnswer: {
            webhooks: {
                id: string;
                url: string;
                events: ("approval.requested" | "approval.decided" | "approval.expired" | "halt.created" | "halt.released" | "budget.threshold" | "budget.exceeded" | "violation" | "policy.reload_failed" | "audit.unwritable" | "webhook.disabled")[];
                /** @description The org whose events it gets; null: all orgs. */
                org_id: string | null;
                created_by: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
                /** @description Messages that have not arrived yet. */
                waiting: number;
                /** @description Messages it missed, because too many waited or it was disabled. */
                dropped: number;
                /** @description Since when its calls fail; null: the last one arrived. */
                failing_since: string | null;
                last_error: string | null;
                /** @description When the gateway gave it up, after a day of failed calls. */
                disabled_at: string | null;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        GetWebhooksIdAnswer: {
            webhook: {
                id: string;
                url: string;
                events: ("approval.requested" | "approval.decided" | "approval.expired" | "halt.created" | "halt.released" | "budget.threshold" | "budget.exceeded" | "violation" | "policy.reload_failed" | "audit.unwritable" | "webhook.disabled")[];
                /** @description The org whose events it gets; null: all orgs. */
                org_id: string | null;
                created_by: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                created_at: string;
                /** @description Messages that have not arrived yet. */
                waiting: number;
                /** @description Messages it missed, because too many waited or it was disabled. */
                dropped: number;
                /** @description Since when its calls fail; null: the last one arrived. */
                failing_since: string | null;
                last_error: string | null;
                /** @description When the gateway gave it up, after a day of failed calls. */
                disabled_at: string | null;
            };
        };
        PostWebhooksIdTestAnswer: {
            /** @description The `webhook-id` of the call. */
            message_id: string;
        };
        GetPoliciesAnswer: {
            /** @description Changes if and only if the content of the documents changes. */
            version: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            loaded_at: string;
            /** @description The last reload, if it failed; for credentials of all orgs. */
            reload_error: {
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                at: string;
                by: string;
                reason: string;
                problems: string[];
            } | null;
            documents: {
                name: string;
                scope: string;
                rule_count: number;
                source: string;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        PostPoliciesRequest: {
            files?: {
                /** @description must be 1 to 256 bytes */
                name: string;
                /** @description YAML, as in a policy file. */
                text: string;
            }[] | null;
            /** @description Of a set that was published before, in place of `files`. */
            version?: string | null;
        };
        PostPoliciesAnswer: {
            version: string;
            documents: number;
            changed: boolean;
            warnings: string[];
        };
        GetPoliciesRulesAnswer: {
            version: string;
            /** @description In the order in which a check goes through them. */
            rules: {
                policy: string;
                scope: string;
                source: string;
                id: string;
                /** @enum {string} */
                effect: "allow" | "require_approval" | "deny";
                actions: string[];
                resources: string[];
                when: string | null;
                reason: string | null;
                remedy: string | null;
                /** @description Of a rule that requires an approval. */
                approval: {
                    min: number;
                    expires_secs: number;
                    /** @description Null: for one use. */
                    valid_secs: number | null;
                    /** @description Empty: every credential with admin scope. */
                    approvers: string[];
                } | null;
                /** @description Obligations of a caller that the rule allows. */
                obligations: {
                    id: string;
                    type: string;
                    properties: {
                        [key: string]: unknown;
                    };
                }[];
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        PostPoliciesExplainRequest: {
            agent: {
                /** @default  */
                org_id: string | null;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                team_id: string;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                agent_id: string;
            };
            caller?: {
                /** @default  */
                org_id: string | null;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                team_id: string;
                /** @description must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." */
                agent_id: string;
            } | null;
            /** @description must be at most 256 bytes */
            action: string;
            /** @default  */
            resource: string | null;
            attributes?: {
                [key: string]: unknown;
            } | null;
            /** @default 0 */
            estimated_cost_usd: number | null;
            /** @description The session whose limits are looked at as well. Default: those of no session. */
            trace_id?: string | null;
            /** @description A draft that decides in place of the set in force. */
            files?: {
                /** @description must be 1 to 256 bytes */
                name: string;
                /** @description YAML, as in a policy file. */
                text: string;
            }[] | null;
        };
        PostPoliciesExplainAnswer: {
            version: string;
            decision: {
                /** @enum {string} */
                decision: "allow" | "require_approval" | "deny";
                policy: string | null;
                rule_id: string | null;
                reason: string;
                /** @description An alternative for the agent, if the rule names one. */
                remedy: string | null;
                /** @description The terms, if an approval is required. */
                approval: {
                    min: number;
                    expires_secs: number;
                    /** @description Null: for one use. */
                    valid_secs: number | null;
                    /** @description Empty: every credential with admin scope. */
                    approvers: string[];
                } | null;
                /** @description Obligations of all matching rules that allow. */
                obligations: {
                    id: string;
                    type: string;
                    properties: {
                        [key: string]: unknown;
                    };
                }[];
            };
            /** @description The halt or the exhausted cap that denies the check although the policies do not; null: none. */
            overruled_by: {
                /** @enum {string} */
                cause: "halt" | "limit" | "budget";
                reason: string;
            } | null;
            /** @description Documents whose scope includes the agent, in cascade order. */
            documents: {
                name: string;
                scope: string;
                source: string;
                rules: {
                    id: string;
                    /** @enum {string} */
                    effect: "allow" | "require_approval" | "deny";
                    /** @enum {string} */
                    outcome: "action-differs" | "resource-differs" | "condition-false" | "condition-failed" | "matched";
                    detail: string;
                    /** @description True for the rule named in the decision. */
                    decided: boolean;
                }[];
            }[];
        };
        GetPoliciesVersionsAnswer: {
            versions: {
                version: string;
                /** @enum {string} */
                state: "in_force" | "shadow" | "past";
                /**
                 * Format: date-time
                 * @description Since when it was in force the last time.
                 */
                since: string;
                /** @description Until when it was in force; null: it is, or it is the shadow. */
                until: string | null;
                /** @description Who put it in force: `key:<id>`, `account:<id>` or `gateway`. */
                by: string;
                documents: number;
                rules: number;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        GetPoliciesVersionsVersionAnswer: {
            version: string;
            /** @enum {string} */
            state: "in_force" | "shadow" | "past";
            /**
             * Format: date-time
             * @description Since when it was in force the last time.
             */
            since: string;
            /** @description Until when it was in force; null: it is, or it is the shadow. */
            until: string | null;
            /** @description Who put it in force: `key:<id>`, `account:<id>` or `gateway`. */
            by: string;
            documents: number;
            rules: number;
            files: {
                name: string;
                text: string;
            }[];
        };
        GetPoliciesDiffAnswer: {
            from: string;
            to: string;
            changes: {
                /** @enum {string} */
                kind: "added" | "removed" | "changed";
                document: string;
                scope: string;
                /** @description null: the document itself. */
                rule_id: string | null;
                /** @description As written; null for an addition. */
                before: {
                    [key: string]: unknown;
                } | null;
                /** @description As written; null for a removal. */
                after: {
                    [key: string]: unknown;
                } | null;
            }[];
        };
        PutPoliciesShadowRequest: {
            files: {
                /** @description must be 1 to 256 bytes */
                name: string;
                /** @description YAML, as in a policy file. */
                text: string;
            }[];
            /** @default 604800 */
            expires_in_secs: number | null;
        };
        PutPoliciesShadowAnswer: {
            version: string;
            documents: number;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            expires_at: string;
            warnings: string[];
        };
        GetPoliciesShadowAnswer: {
            version: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            since: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            expires_at: string;
            by: string;
            /** @description Compared so far. */
            checks: number;
            /** @description Checks that it decides differently. */
            differing: number;
            /** @description Checks on which it failed. */
            errors: number;
            /** @description By the rule of the shadow or, if none of its rules decides, the rule in force. */
            changes: {
                /** @enum {string} */
                from: "allow" | "deny" | "pending";
                /** @enum {string} */
                to: "allow" | "deny" | "pending";
                policy: string | null;
                rule_id: string | null;
                count: number;
            }[];
        };
        PostPoliciesReplayRequest: {
            files?: {
                /** @description must be 1 to 256 bytes */
                name: string;
                /** @description YAML, as in a policy file. */
                text: string;
            }[] | null;
            /** @description Of a set that the gateway keeps, in place of `files`. */
            version?: string | null;
            since?: string | null;
            until?: string | null;
            /** @description Only checks of this org. */
            org_id?: string | null;
            team_id?: string | null;
            agent_id?: string | null;
        };
        PostAuthWsTicketAnswer: {
            ticket: string;
            expires_in: number;
        };
        GetLogsAnswer: {
            entries: {
                /** @description Counts from 1 without gaps, across all orgs. */
                id: number;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                timestamp: string;
                /** @enum {string} */
                event_type: "ActionAllowed" | "ActionDenied" | "A2ACallIntercepted" | "A2AImpersonationAttempted" | "BudgetLimitExceeded" | "OpRegistered" | "OpPaused" | "OpResumed" | "OpTerminated" | "OpCompleted" | "AgentRegistered" | "AgentDeregistered" | "ApiKeyCreated" | "ApiKeyRevoked" | "TokenIssued" | "AccountRegistered" | "LoginSucceeded" | "LoginFailed" | "AccountLocked" | "InviteCreated" | "InviteAccepted" | "InviteRevoked" | "PasswordResetRequested" | "PasswordResetCompleted" | "SessionRevoked" | "AccountRoleChanged" | "AccountDisabled" | "AccountEnabled" | "AccountUnlocked" | "PolicyReloaded" | "HaltCreated" | "HaltReleased" | "GatewayForgotten" | "ApprovalRequested" | "ApprovalApproved" | "ApprovalDenied" | "ApprovalExpired" | "ApprovalCancelled" | "ApprovalUsed" | "WebhookCreated" | "WebhookDeleted" | "WebhookTakenOver" | "CheckpointWitnessed" | "SettingsChanged" | "PolicyShadowStarted" | "PolicyShadowEnded";
                lineage: {
                    org_id: string | null;
                    team_id: string | null;
                    agent_id: string | null;
                };
                op_id: string | null;
                decision: ("allow" | "deny") | null;
                reason: string | null;
                policy: string | null;
                rule_id: string | null;
                /** @description Why it was denied. */
                cause?: ("rule" | "no_rule" | "condition_error" | "budget" | "credential" | "operation_state" | "halt" | "approval" | "obligation" | "unrecorded" | "limit") | null;
                actor: string;
                payload: {
                    [key: string]: unknown;
                };
                /** @description Which of several gateways that act as one has decided. */
                gateway?: string;
                prev_hash: string;
                hash: string;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
            /** @description In a cluster: the gateways that did not answer, so that their rows are missing. */
            incomplete?: string[];
        };
        GetChangesAnswer: {
            changes: {
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                at: string;
                /** @enum {string} */
                kind: "policy" | "key" | "account" | "halt" | "webhook" | "settings" | "agent";
                /** @description One sentence for people. */
                summary: string;
                /** @description Who changed it, as `actor` of the audit entry. */
                by: string;
                audit_id: number;
                /** @description The payload of the audit entry. */
                details: {
                    [key: string]: unknown;
                };
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
            /** @description In a cluster: the gateways that did not answer, so that their rows are missing. */
            incomplete?: string[];
        };
        PostAuditWitnessRequest: {
            /** @description The last entry of the log at `timestamp`. */
            id: number;
            /** @description must be the hash of that entry: 64 lower-case hexadecimal digits */
            hash: string;
            /** @description must be an RFC 3339 time such as 2026-01-31T12:00:00Z */
            timestamp: string;
            /** @description must be the signature of the checkpoint: 86 characters of base64url */
            signature: string;
            first_id?: number | null;
            gateway?: string | null;
            peers?: {
                /** @description must be the name of a gateway: at most 64 letters, digits, dots, underscores and hyphens */
                gateway: string;
                id: number;
                /** @description must be the hash of that entry: 64 lower-case hexadecimal digits */
                hash: string;
            }[] | null;
        };
        PostAuditWitnessAnswer: {
            /** @description The entry of the other log that is now kept here. */
            id: number;
            hash: string;
        };
        GetAuditSinksAnswer: {
            sinks: {
                name: string;
                /** @enum {string} */
                type: "file" | "http" | "syslog" | "otlp";
                /** @enum {string} */
                format: "native" | "ocsf";
                /** @description Its path, or its URL without a query. */
                place: string;
                /** @description The last entry that its receiver has; 0: none. */
                sent_id: number;
                /** @description Entries that it has not got yet. */
                lag_entries: number;
                /** @description Since the start, repeated ones included. */
                sent_entries: number;
                /** @description Entries that retention deleted before they were sent, since the start. */
                lost_entries: number;
                /** @description Attempts that failed since the start. */
                failures: number;
                /** @description Why the last attempt failed; null: it did not. */
                trouble: string | null;
            }[];
        };
        PostAuditSinksNameTestAnswer: {
            ok: boolean;
            /** @description Why the receiver did not take the test. */
            trouble: string | null;
        };
        PostAuditSinksNameReplayRequest: {
            /** @description The first entry to send; beyond the end: new ones only. */
            from: number;
        };
        PostAuditSinksNameReplayAnswer: {
            /** @description The entry that is sent next, with all after it. */
            from: number;
        };
        GetClusterAnswer: {
            members: {
                name: string;
                /** @description One start of the gateway. */
                run: string;
                /**
                 * @description `suspect`: its lease is over; it may come back. `retired`: another run has taken its place.
                 * @enum {string}
                 */
                state: "live" | "suspect" | "retired";
                version: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                lease_until: string;
                /** @description How far its clock is ahead of the one of the database. */
                skew_ms: number;
                policy_version: string | null;
                /** @description The last entry of its audit log that it reported. */
                audit_head: {
                    id: number;
                    hash: string;
                } | null;
                /** @description Whether it can exchange messages with the others. null: an older release. */
                bus: ("connected" | "cut_off") | null;
                /** @description Changes that it did not confirm in time and has not caught up with. */
                unconfirmed: number;
                /** @description Its grants that are neither spent nor returned. */
                stranded_usd: number;
            }[];
        };
        PostClusterForgetRequest: {
            /** @description The name of the gateway. */
            name: string;
            /**
             * @description The fate of its grants that are not reported as spent.
             * @default charge
             */
            unspent: ("charge" | "free") | null;
        };
        PostClusterForgetAnswer: {
            /** @description Its grants that were not reported as spent. */
            unspent_usd: number;
        };
        GetStatsAnswer: {
            /** @enum {string} */
            window: "15m" | "1h" | "24h" | "7d" | "30d";
            /**
             * Format: date-time
             * @description The beginning of the window, or since when anything is known.
             */
            from: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            to: string;
            checks: {
                allow: number;
                deny: number;
                pending: number;
            };
            denies: {
                by_cause: {
                    /** @enum {string} */
                    cause: "rule" | "no_rule" | "condition_error" | "budget" | "credential" | "operation_state" | "halt" | "approval" | "obligation" | "unrecorded" | "limit";
                    count: number;
                }[];
                by_rule: {
                    policy: string | null;
                    rule_id: string | null;
                    count: number;
                }[];
                /** @description The 50 with the most; a last row of nulls has all others. Likewise rules. */
                by_agent: {
                    org_id: string | null;
                    team_id: string | null;
                    agent_id: string | null;
                    count: number;
                }[];
                by_org: {
                    org_id: string;
                    count: number;
                }[];
            };
            orgs: {
                org_id: string;
                allow: number;
                deny: number;
                pending: number;
                spend_usd: number;
            }[];
            spend_usd: number;
            /** @description At most so many milliseconds, over the whole gateway: null for a single org. */
            latency_ms: {
                p50: number | null;
                p95: number | null;
                p99: number | null;
            } | null;
            /** @description At most 50 of each: the rules that decided most, the busiest agents, the biggest spenders. */
            top: {
                rules: {
                    policy: string;
                    rule_id: string;
                    allow: number;
                    deny: number;
                    pending: number;
                }[];
                agents: {
                    org_id: string;
                    team_id: string;
                    agent_id: string;
                    checks: number;
                    denies: number;
                }[];
                spenders: {
                    org_id: string;
                    team_id: string;
                    agent_id: string;
                    spend_usd: number;
                }[];
            };
            /** @description For windows up to a day: the minutes in which something happened, the oldest first. */
            minutes?: {
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                at: string;
                allow: number;
                deny: number;
                pending: number;
                spend_usd: number;
                /** @description At most so many milliseconds, over the whole gateway: null for a single org. */
                latency_ms: {
                    p50: number | null;
                    p95: number | null;
                    p99: number | null;
                } | null;
            }[];
            /** @description For longer windows, likewise. */
            hours?: {
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                at: string;
                allow: number;
                deny: number;
                pending: number;
                spend_usd: number;
                /** @description At most so many milliseconds, over the whole gateway: null for a single org. */
                latency_ms: {
                    p50: number | null;
                    p95: number | null;
                    p99: number | null;
                } | null;
            }[];
            /** @description There were too many orgs to count each by itself, or a gateway of the cluster has not answered. */
            incomplete: boolean;
        };
        GetTopologyOverviewAnswer: {
            org_count: number;
            team_count: number;
            agent_count: number;
            /** @description The teams of the agents on this page. */
            teams: {
                team_id: string;
                org_id: string;
                agent_count: number;
                /** @description In the last five minutes. */
                agents_seen: number;
                active_ops: number;
                ops: {
                    pending: number;
                    running: number;
                    paused: number;
                    completing: number;
                    terminated: number;
                };
            }[];
            agents: {
                /** @description Empty for an agent without an org. */
                org_id: string;
                team_id: string;
                agent_id: string;
                /** @description `<org>/<team>/<agent>` */
                parent: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                registered_at: string;
                last_seen_at: string | null;
                active_ops: number;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        GetTopologyTreeAnswer: {
            orgs: {
                org_id: string;
                teams: {
                    team_id: string;
                    agents: components["schemas"]["TreeNode"][];
                }[];
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        GetTopologyStatsAnswer: {
            org_count: number;
            team_count: number;
            agent_count: number;
            agents_seen: number;
            active_ops: number;
            ops: {
                pending: number;
                running: number;
                paused: number;
                completing: number;
                terminated: number;
            };
            /** @description How long a finished operation is kept and counted. */
            ops_ttl_secs: number;
            /** @description Orgs, or the teams of the requested org. */
            groups: ({
                org_id: string;
                agent_count: number;
                /** @description In the last five minutes. */
                agents_seen: number;
                active_ops: number;
                ops: {
                    pending: number;
                    running: number;
                    paused: number;
                    completing: number;
                    terminated: number;
                };
            } | {
                team_id: string;
                org_id: string;
                agent_count: number;
                /** @description In the last five minutes. */
                agents_seen: number;
                active_ops: number;
                ops: {
                    pending: number;
                    running: number;
                    paused: number;
                    completing: number;
                    terminated: number;
                };
            })[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        GetTopologyTeamTeamIdAnswer: {
            /** @description The teams of the agents on this page. */
            teams: {
                team_id: string;
                org_id: string;
                agent_count: number;
                /** @description In the last five minutes. */
                agents_seen: number;
                active_ops: number;
                ops: {
                    pending: number;
                    running: number;
                    paused: number;
                    completing: number;
                    terminated: number;
                };
            }[];
            agents: {
                /** @description Empty for an agent without an org. */
                org_id: string;
                team_id: string;
                agent_id: string;
                /** @description `<org>/<team>/<agent>` */
                parent: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                registered_at: string;
                last_seen_at: string | null;
                active_ops: number;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        GetTopologyLineageAgentIdAnswer: {
            lineages: {
                agent: {
                    /** @description Empty for an agent without an org. */
                    org_id: string;
                    team_id: string;
                    agent_id: string;
                    /** @description `<org>/<team>/<agent>` */
                    parent: string | null;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    registered_at: string;
                    last_seen_at: string | null;
                    active_ops: number;
                };
                /** @description Nearest first. */
                ancestors: {
                    /** @description Empty for an agent without an org. */
                    org_id: string;
                    team_id: string;
                    agent_id: string;
                    /** @description `<org>/<team>/<agent>` */
                    parent: string | null;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    registered_at: string;
                    last_seen_at: string | null;
                    active_ops: number;
                }[];
                /** @description Nearest first. */
                descendants: {
                    /** @description Empty for an agent without an org. */
                    org_id: string;
                    team_id: string;
                    agent_id: string;
                    /** @description `<org>/<team>/<agent>` */
                    parent: string | null;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    registered_at: string;
                    last_seen_at: string | null;
                    active_ops: number;
                    depth: number;
                }[];
                truncated: boolean;
            }[];
            /** @description The `cursor` of the next page; null on the last one. */
            next_cursor: string | null;
        };
        PostAccessV1EvaluationRootRequest: {
            subject: {
                /** @description `agent`, or the word of the application for its users. */
                type: string;
                /** @description Of type `agent`: `<org>/<team>/<agent>`. */
                id: string;
                properties?: {
                    [key: string]: unknown;
                } | null;
            } & {
                [key: string]: unknown;
            };
            action: {
                name: string;
                properties?: {
                    [key: string]: unknown;
                } | null;
            } & {
                [key: string]: unknown;
            };
            resource: {
                type: string;
                id: string;
                properties?: {
                    [key: string]: unknown;
                } | null;
            } & {
                [key: string]: unknown;
            };
            context?: ({
                trace_id?: string | null;
                span_id?: string | null;
                supported_obligations?: string[] | null;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        PostAccessV1EvaluationRootAnswer: {
            /** @description Whether the action may be taken; false also while a person must approve. */
            decision: boolean;
            context: {
                /** @description One sentence for people. */
                reason: string;
                /** @description Why it is not allowed, in one word for programs; null if it is allowed. */
                cause: ("rule" | "no_rule" | "condition_error" | "budget" | "credential" | "operation_state" | "halt" | "approval" | "obligation" | "unrecorded" | "limit") | null;
                policy: string | null;
                rule_id: string | null;
                /** @description The entry in the audit log. */
                audit_id: number | null;
                /** @description The operation that has begun; null if none was asked for. */
                op_id: string | null;
                /** @description The approval that a person must give, or has given. */
                approval_id?: string;
                /** @description An alternative to the denied action. */
                remedy?: string;
                /** @description Obligations of the caller on arguments or results. Absent: none. */
                obligations?: {
                    id: string;
                    type: string;
                    properties: {
                        [key: string]: unknown;
                    };
                }[];
            };
        };
        PostAccessV1EvaluationsRootRequest: {
            subject?: ({
                /** @description `agent`, or the word of the application for its users. */
                type: string;
                /** @description Of type `agent`: `<org>/<team>/<agent>`. */
                id: string;
                properties?: {
                    [key: string]: unknown;
                } | null;
            } & {
                [key: string]: unknown;
            }) | null;
            action?: ({
                name: string;
                properties?: {
                    [key: string]: unknown;
                } | null;
            } & {
                [key: string]: unknown;
            }) | null;
            resource?: ({
                type: string;
                id: string;
                properties?: {
                    [key: string]: unknown;
                } | null;
            } & {
                [key: string]: unknown;
            }) | null;
            context?: ({
                trace_id?: string | null;
                span_id?: string | null;
                supported_obligations?: string[] | null;
            } & {
                [key: string]: unknown;
            }) | null;
            options?: ({
                evaluations_semantic?: ("execute_all" | "deny_on_first_deny" | "permit_on_first_permit") | null;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description Up to 1000 evaluations, each with the members that differ. */
            evaluations?: unknown[] | null;
        } & {
            [key: string]: unknown;
        };
        PostAccessV1EvaluationsRootAnswer: {
            /** @description In the order of the request. */
            evaluations: ({
                /** @description Whether the action may be taken; false also while a person must approve. */
                decision: boolean;
                context: {
                    /** @description One sentence for people. */
                    reason: string;
                    /** @description Why it is not allowed, in one word for programs; null if it is allowed. */
                    cause: ("rule" | "no_rule" | "condition_error" | "budget" | "credential" | "operation_state" | "halt" | "approval" | "obligation" | "unrecorded" | "limit") | null;
                    policy: string | null;
                    rule_id: string | null;
                    /** @description The entry in the audit log. */
                    audit_id: number | null;
                    /** @description The operation that has begun; null if none was asked for. */
                    op_id: string | null;
                    /** @description The approval that a person must give, or has given. */
                    approval_id?: string;
                    /** @description An alternative to the denied action. */
                    remedy?: string;
                    /** @description Obligations of the caller on arguments or results. Absent: none. */
                    obligations?: {
                        id: string;
                        type: string;
                        properties: {
                            [key: string]: unknown;
                        };
                    }[];
                };
            } | {
                /** @constant */
                decision: false;
                context: {
                    reason: string;
                    /** @description Why this item could not be evaluated. */
                    error: {
                        status: number;
                        message: string;
                    };
                };
            })[];
        } | {
            /** @description Whether the action may be taken; false also while a person must approve. */
            decision: boolean;
            context: {
                /** @description One sentence for people. */
                reason: string;
                /** @description Why it is not allowed, in one word for programs; null if it is allowed. */
                cause: ("rule" | "no_rule" | "condition_error" | "budget" | "credential" | "operation_state" | "halt" | "approval" | "obligation" | "unrecorded" | "limit") | null;
                policy: string | null;
                rule_id: string | null;
                /** @description The entry in the audit log. */
                audit_id: number | null;
                /** @description The operation that has begun; null if none was asked for. */
                op_id: string | null;
                /** @description The approval that a person must give, or has given. */
                approval_id?: string;
                /** @description An alternative to the denied action. */
                remedy?: string;
                /** @description Obligations of the caller on arguments or results. Absent: none. */
                obligations?: {
                    id: string;
                    type: string;
                    properties: {
                        [key: string]: unknown;
                    };
                }[];
            };
        };
        GetWellKnownAuthzenConfigurationRootAnswer: {
            policy_decision_point: string;
            access_evaluation_endpoint: string;
            access_evaluations_endpoint: string;
            supported_obligations: string[];
        };
        PostV1DataSvcAuthzDecisionRootRequest: {
            input: ({
                action: string;
                resource?: string | null;
                attributes?: {
                    [key: string]: unknown;
                } | null;
                trace_id?: string | null;
                span_id?: string | null;
                supported_obligations?: string[] | null;
            } & {
                [key: string]: unknown;
            }) | ({
                tool: {
                    name: string;
                } & {
                    [key: string]: unknown;
                };
                /** @description The attributes of a `tool.call` on this name. */
                args?: {
                    [key: string]: unknown;
                } | null;
                trace_id?: string | null;
                span_id?: string | null;
                supported_obligations?: string[] | null;
            } & {
                [key: string]: unknown;
            });
        } & {
            [key: string]: unknown;
        };
        PostV1DataSvcAuthzDecisionRootAnswer: {
            result: {
                /** @enum {string} */
                decision: "allow" | "deny" | "requires-approval";
                /** @description One sentence for people. */
                reason: string;
                /** @description Why it is not allowed, in one word for programs; null if it is allowed. */
                cause: ("rule" | "no_rule" | "condition_error" | "budget" | "credential" | "operation_state" | "halt" | "approval" | "obligation" | "unrecorded" | "limit") | null;
                policy: string | null;
                rule_id: string | null;
                /** @description The entry in the audit log. */
                audit_id: number | null;
                /** @description The operation that has begun; null if none was asked for. */
                op_id: string | null;
                /** @description The approval that a person must give, or has given. */
                approval_id?: string;
                /** @description An alternative to the denied action. */
                remedy?: string;
                /** @description Obligations of the caller on arguments or results. Absent: none. */
                obligations?: {
                    id: string;
                    type: string;
                    properties: {
                        [key: string]: unknown;
                    };
                }[];
            };
        };
        PostV1DataSvcAuthzDecisionRootFailure: {
            code: string;
            message: string;
        };
        /** @description The event, as the coding agent sends it to its hooks. */
        PostHooksClaudeCodeRequest: {
            [key: string]: unknown;
        };
        /** @description The decision, in the fields that the coding agent knows. */
        PostHooksClaudeCodeAnswer: {
            [key: string]: unknown;
        };
        PostV1AgentHooksInterceptRootRequest: {
            /** @constant */
            spec: "agent-hooks/0.1";
            /** @enum {string} */
            interception_point: "agent_startup" | "input" | "pre_model_call" | "post_model_call" | "pre_tool_call" | "post_tool_call" | "output" | "agent_shutdown";
            agent: {
                id: string;
                framework: string;
            } & {
                [key: string]: unknown;
            };
            session: {
                id: string;
            } & {
                [key: string]: unknown;
            };
            tool_call?: ({
                id: string;
                name: string;
                args: {
                    [key: string]: unknown;
                };
            } & {
                [key: string]: unknown;
            }) | null;
            tool_result?: ({
                is_error: boolean;
            } & {
                [key: string]: unknown;
            }) | null;
        } & {
            [key: string]: unknown;
        };
        PostV1AgentHooksInterceptRootAnswer: {
            /** @constant */
            decision: "allow";
            warnings?: {
                reason: string;
                message: string;
            }[];
            evidence?: {
                verification_pointers: {
                    [key: string]: string;
                };
            };
        } | {
            /** @constant */
            decision: "transform";
            transform: {
                /** @constant */
                path: "$target";
                value: {
                    [key: string]: unknown;
                };
            };
            warnings?: {
                reason: string;
                message: string;
            }[];
            evidence?: {
                verification_pointers: {
                    [key: string]: string;
                };
            };
        } | {
            /** @constant */
            decision: "deny";
            reason: string;
            message: string;
            approval?: {
                id: string;
            };
            evidence?: {
                verification_pointers: {
                    [key: string]: string;
                };
            };
        };
        GetHealthzRootAnswer: {
            /** @constant */
            status: "ok";
        };
        GetReadyzRootAnswer: {
            /**
             * @description `degraded`: checks work, but a part named below does not.
             * @enum {string}
             */
            status: "ready" | "degraded";
            /**
             * @description `unwritable` only with SVC_AUDIT_ON_FAILURE=allow: checks are answered but not recorded.
             * @enum {string}
             */
            audit: "writable" | "unwritable";
            /**
             * @description Checks do not need it.
             * @enum {string}
             */
            database: "not_configured" | "reachable" | "unreachable";
            /**
             * @description Present only while a witness of SVC_AUDIT_WITNESS does not take checkpoints. Checks are recorded as ever.
             * @constant
             */
            audit_witness?: "unreachable";
            /**
             * @description Present only while keys, registrations and spend cannot be written to the data directory. Checks still work.
             * @constant
             */
            store?: "unwritable";
            /**
             * @description Present only with SVC_CLUSTER=on. `unreachable`: the lease of this gateway is over.
             * @enum {string}
             */
            cluster?: "reachable" | "unreachable" | "wrong_clock";
            /**
             * @description Present only while messages cannot be exchanged with the other gateways of the cluster. Checks do not need them.
             * @constant
             */
            bus?: "unreachable";
        };
    };
    responses: {
        /** @description A problem document (RFC 9457) */
        Problem: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Bad Request */
        BadRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Content Too Large */
        ContentTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Unsupported Media Type */
        UnsupportedMediaType: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Too Many Requests */
        TooManyRequests: {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Service Unavailable */
        ServiceUnavailable: {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Unauthorized */
        Unauthorized: {
            headers: {
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Forbidden */
        Forbidden: {
            headers: {
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Not Found */
        NotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Conflict */
        Conflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Unprocessable Content */
        UnprocessableContent: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Locked */
        Locked: {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Upgrade Required */
        UpgradeRequired: {
            headers: {
                Upgrade: components["headers"]["Upgrade"];
                "Sec-WebSocket-Version": components["headers"]["Sec-WebSocket-Version"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description An error of Connect; the header `svc-code` has the stable word for it */
        Connect: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ConnectError"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description `Bearer`; includes the required scope if the credential lacks it. */
        "WWW-Authenticate": string;
        /** @description Seconds to wait before retrying. */
        "Retry-After": number;
        /** @description Remaining requests, and seconds until there are more. */
        RateLimit: string;
        /** @description Quota of requests, and its window in seconds. */
        "RateLimit-Policy": string;
        /** @description `websocket` */
        Upgrade: string;
        /** @description `13` */
        "Sec-WebSocket-Version": string;
        /** @description Sets, renews or clears the refresh cookie. */
        "Set-Cookie": string;
        /** @description File name for saving the response. */
        "Content-Disposition": string;
        /** @description In a cluster: gateways that did not answer, so that their rows are missing. */
        "svc-incomplete": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    post_auth_token: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "scopes": [
                 *         "read"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["PostAuthTokenRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "token": "a token",
                     *       "expires_at": 1,
                     *       "scopes": [
                     *         "read"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PostAuthTokenAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_iam_api_keys_self: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "a id",
                     *       "name": "a name",
                     *       "scopes": [
                     *         "read"
                     *       ],
                     *       "org_id": "acme",
                     *       "expires_at": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["GetIamApiKeysSelfAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_iam_api_keys: {
        parameters: {
            query?: {
                org_id?: string;
                made_by?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "api_keys": [
                     *         {
                     *           "id": "a id",
                     *           "name": "a name",
                     *           "hint": "a hint",
                     *           "scopes": [
                     *             "read"
                     *           ],
                     *           "org_id": "acme",
                     *           "created_at": "2026-01-31T12:00:00Z",
                     *           "created_by": "a created by",
                     *           "expires_at": "2026-01-31T12:00:00Z",
                     *           "revoked_at": "2026-01-31T12:00:00Z",
                     *           "last_used_at": "2026-01-31T12:00:00Z"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetIamApiKeysAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_iam_api_keys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "a name",
                 *       "scopes": [
                 *         "read"
                 *       ],
                 *       "org_id": "acme",
                 *       "expires_at": "2026-01-31T12:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["PostIamApiKeysRequest"];
            };
        };
        responses: {
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "key": "a key",
                     *       "id": "a id",
                     *       "name": "a name",
                     *       "hint": "a hint",
                     *       "scopes": [
                     *         "read"
                     *       ],
                     *       "org_id": "acme",
                     *       "created_at": "2026-01-31T12:00:00Z",
                     *       "created_by": "a created by",
                     *       "expires_at": "2026-01-31T12:00:00Z",
                     *       "revoked_at": "2026-01-31T12:00:00Z",
                     *       "last_used_at": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["PostIamApiKeysAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_iam_api_keys_id_revoke: {
        parameters: {
            query?: {
                cascade?: boolean;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_iam_api_keys_root: {
        parameters: {
            query?: {
                org_id?: string;
                made_by?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "api_keys": [
                     *         {
                     *           "id": "a id",
                     *           "name": "a name",
                     *           "hint": "a hint",
                     *           "scopes": [
                     *             "read"
                     *           ],
                     *           "org_id": "acme",
                     *           "created_at": "2026-01-31T12:00:00Z",
                     *           "created_by": "a created by",
                     *           "expires_at": "2026-01-31T12:00:00Z",
                     *           "revoked_at": "2026-01-31T12:00:00Z",
                     *           "last_used_at": "2026-01-31T12:00:00Z"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetIamApiKeysAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_iam_api_keys_root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "a name",
                 *       "scopes": [
                 *         "read"
                 *       ],
                 *       "org_id": "acme",
                 *       "expires_at": "2026-01-31T12:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["PostIamApiKeysRequest"];
            };
        };
        responses: {
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "key": "a key",
                     *       "id": "a id",
                     *       "name": "a name",
                     *       "hint": "a hint",
                     *       "scopes": [
                     *         "read"
                     *       ],
                     *       "org_id": "acme",
                     *       "created_at": "2026-01-31T12:00:00Z",
                     *       "created_by": "a created by",
                     *       "expires_at": "2026-01-31T12:00:00Z",
                     *       "revoked_at": "2026-01-31T12:00:00Z",
                     *       "last_used_at": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["PostIamApiKeysAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_iam_api_keys_id_revoke_root: {
        parameters: {
            query?: {
                cascade?: boolean;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_iam_signing_keys_rotate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "kid": "a kid"
                     *     }
                     */
                    "application/json": components["schemas"]["PostIamSigningKeysRotateAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_well_known_jwks_json_root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "keys": [
                     *         {
                     *           "kty": "a kty",
                     *           "kid": "a kid"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["GetWellKnownJwksJsonRootAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_auth_methods: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "methods": [
                     *         "api_key"
                     *       ],
                     *       "registration": "first_account",
                     *       "setup_required": true,
                     *       "reset_by_mail": false
                     *     }
                     */
                    "application/json": components["schemas"]["GetAuthMethodsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_auth_register: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "ada@example.com",
                 *       "password": "correct horse battery staple",
                 *       "setup_token": "a setup token"
                 *     }
                 */
                "application/json": components["schemas"]["PostAuthRegisterRequest"];
            };
        };
        responses: {
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "account": {
                     *         "id": "a id",
                     *         "email": "ada@example.com",
                     *         "role": "owner",
                     *         "org_id": "acme",
                     *         "created_at": "2026-01-31T12:00:00Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["PostAuthRegisterAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_auth_login: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "ada@example.com",
                 *       "password": "correct horse battery staple",
                 *       "remember_me": null
                 *     }
                 */
                "application/json": components["schemas"]["PostAuthLoginRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    "Set-Cookie": components["headers"]["Set-Cookie"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "access_token": "a access token",
                     *       "token_type": "Bearer",
                     *       "expires_in": 1,
                     *       "expires_at": 1,
                     *       "scopes": [
                     *         "read"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PostAuthLoginAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            423: components["responses"]["Locked"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_auth_refresh: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    "Set-Cookie": components["headers"]["Set-Cookie"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "access_token": "a access token",
                     *       "token_type": "Bearer",
                     *       "expires_in": 1,
                     *       "expires_at": 1,
                     *       "scopes": [
                     *         "read"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PostAuthLoginAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_auth_logout: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    "Set-Cookie": components["headers"]["Set-Cookie"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_auth_invite: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "ada@example.com",
                 *       "role": "owner",
                 *       "org_id": "acme"
                 *     }
                 */
                "application/json": components["schemas"]["PostAuthInviteRequest"];
            };
        };
        responses: {
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "invite_token": "a invite token",
                     *       "email": "ada@example.com",
                     *       "role": "owner",
                     *       "org_id": "acme",
                     *       "expires_at": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["PostAuthInviteAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_auth_invite_accept: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "invite_token": "a invite token",
                 *       "password": "correct horse battery staple"
                 *     }
                 */
                "application/json": components["schemas"]["PostAuthInviteAcceptRequest"];
            };
        };
        responses: {
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "account": {
                     *         "id": "a id",
                     *         "email": "ada@example.com",
                     *         "role": "owner",
                     *         "org_id": "acme",
                     *         "created_at": "2026-01-31T12:00:00Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["PostAuthRegisterAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_auth_invites: {
        parameters: {
            query?: {
                org_id?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "invites": [
                     *         {
                     *           "id": "a id",
                     *           "email": "ada@example.com",
                     *           "role": "owner",
                     *           "org_id": "acme",
                     *           "created_at": "2026-01-31T12:00:00Z",
                     *           "invited_by": "a invited by",
                     *           "expires_at": "2026-01-31T12:00:00Z"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetAuthInvitesAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_auth_invites_id_revoke: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_auth_password_reset: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "ada@example.com"
                 *     }
                 */
                "application/json": components["schemas"]["PostAuthPasswordResetRequest"];
            };
        };
        responses: {
            /** @description Done */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_auth_password_reset_confirm: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reset_token": "a reset token",
                 *       "new_password": "a new password"
                 *     }
                 */
                "application/json": components["schemas"]["PostAuthPasswordResetConfirmRequest"];
            };
        };
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_auth_me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "account": {
                     *         "id": "a id",
                     *         "email": "ada@example.com",
                     *         "role": "owner",
                     *         "org_id": "acme",
                     *         "created_at": "2026-01-31T12:00:00Z",
                     *         "disabled": false,
                     *         "last_login_at": "2026-01-31T12:00:00Z",
                     *         "locked_until": "2026-01-31T12:00:00Z"
                     *       },
                     *       "scopes": [
                     *         "read"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["GetAuthMeAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_auth_sessions_revoke: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_accounts: {
        parameters: {
            query?: {
                org_id?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "accounts": [
                     *         {
                     *           "id": "a id",
                     *           "email": "ada@example.com",
                     *           "role": "owner",
                     *           "org_id": "acme",
                     *           "created_at": "2026-01-31T12:00:00Z",
                     *           "disabled": false,
                     *           "last_login_at": "2026-01-31T12:00:00Z",
                     *           "locked_until": "2026-01-31T12:00:00Z"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetAccountsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_accounts_id: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "account": {
                     *         "id": "a id",
                     *         "email": "ada@example.com",
                     *         "role": "owner",
                     *         "org_id": "acme",
                     *         "created_at": "2026-01-31T12:00:00Z",
                     *         "disabled": false,
                     *         "last_login_at": "2026-01-31T12:00:00Z",
                     *         "locked_until": "2026-01-31T12:00:00Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["GetAccountsIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_accounts_id_role: {
        parameters: {
            query?: {
                cascade?: boolean;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "role": "owner"
                 *     }
                 */
                "application/json": components["schemas"]["PostAccountsIdRoleRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "account": {
                     *         "id": "a id",
                     *         "email": "ada@example.com",
                     *         "role": "owner",
                     *         "org_id": "acme",
                     *         "created_at": "2026-01-31T12:00:00Z",
                     *         "disabled": false,
                     *         "last_login_at": "2026-01-31T12:00:00Z",
                     *         "locked_until": "2026-01-31T12:00:00Z"
                     *       },
                     *       "revoked_keys": [
                     *         {
                     *           "id": "a id",
                     *           "name": "a name"
                     *         }
                     *       ],
                     *       "kept_keys": [
                     *         {
                     *           "id": "a id",
                     *           "name": "a name"
                     *         }
                     *       ],
                     *       "deleted_webhooks": [
                     *         {
                     *           "id": "a id",
                     *           "url": "a url"
                     *         }
                     *       ],
                     *       "kept_webhooks": [
                     *         {
                     *           "id": "a id",
                     *           "url": "a url"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PostAccountsIdRoleAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_accounts_id_disable: {
        parameters: {
            query?: {
                cascade?: boolean;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "account": {
                     *         "id": "a id",
                     *         "email": "ada@example.com",
                     *         "role": "owner",
                     *         "org_id": "acme",
                     *         "created_at": "2026-01-31T12:00:00Z",
                     *         "disabled": false,
                     *         "last_login_at": "2026-01-31T12:00:00Z",
                     *         "locked_until": "2026-01-31T12:00:00Z"
                     *       },
                     *       "revoked_keys": [
                     *         {
                     *           "id": "a id",
                     *           "name": "a name"
                     *         }
                     *       ],
                     *       "kept_keys": [
                     *         {
                     *           "id": "a id",
                     *           "name": "a name"
                     *         }
                     *       ],
                     *       "deleted_webhooks": [
                     *         {
                     *           "id": "a id",
                     *           "url": "a url"
                     *         }
                     *       ],
                     *       "kept_webhooks": [
                     *         {
                     *           "id": "a id",
                     *           "url": "a url"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PostAccountsIdRoleAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_accounts_id_enable: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "account": {
                     *         "id": "a id",
                     *         "email": "ada@example.com",
                     *         "role": "owner",
                     *         "org_id": "acme",
                     *         "created_at": "2026-01-31T12:00:00Z",
                     *         "disabled": false,
                     *         "last_login_at": "2026-01-31T12:00:00Z",
                     *         "locked_until": "2026-01-31T12:00:00Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["GetAccountsIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_accounts_id_unlock: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "account": {
                     *         "id": "a id",
                     *         "email": "ada@example.com",
                     *         "role": "owner",
                     *         "org_id": "acme",
                     *         "created_at": "2026-01-31T12:00:00Z",
                     *         "disabled": false,
                     *         "last_login_at": "2026-01-31T12:00:00Z",
                     *         "locked_until": "2026-01-31T12:00:00Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["GetAccountsIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_accounts_id_reset: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "reset_token": "a reset token",
                     *       "link": "a link",
                     *       "email": "ada@example.com",
                     *       "expires_at": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["PostAccountsIdResetAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_accounts_id_sessions_revoke: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_ops: {
        parameters: {
            query?: {
                org_id?: string;
                state?: string;
                team_id?: string;
                agent_id?: string;
                action?: string;
                resource?: string;
                policy?: string;
                rule_id?: string;
                ended?: "completed" | "failed" | "denied" | "terminated" | "halted" | "expired";
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ops": [
                     *         {
                     *           "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *           "op_home": "a op home",
                     *           "state": "pending",
                     *           "registered_at": "2026-01-31T12:00:00Z",
                     *           "updated_at": "2026-01-31T12:00:00Z",
                     *           "agent": {
                     *             "org_id": "acme",
                     *             "team_id": "search",
                     *             "agent_id": "crawler"
                     *           },
                     *           "action": "tool.call",
                     *           "resource": "web_search",
                     *           "policy": "search-team",
                     *           "rule_id": "web-only",
                     *           "reason": "web tools only",
                     *           "estimated_cost_usd": 1,
                     *           "spent_usd": 1,
                     *           "approval_id": null,
                     *           "error": null,
                     *           "ended": "completed",
                     *           "acknowledged_at": "2026-01-31T12:00:00Z"
                     *         }
                     *       ],
                     *       "next_cursor": null,
                     *       "incomplete": [
                     *         "a incomplete"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["GetOpsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_ops: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                 *       "trace_id": "4bf92f3577b34da6",
                 *       "span_id": "00f067aa0ba902b7",
                 *       "agent": {
                 *         "org_id": "acme",
                 *         "team_id": "search",
                 *         "agent_id": "crawler"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["PostOpsRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *       "op_home": "a op home",
                     *       "state": "pending",
                     *       "registered_at": "2026-01-31T12:00:00Z",
                     *       "updated_at": "2026-01-31T12:00:00Z",
                     *       "agent": {
                     *         "org_id": "acme",
                     *         "team_id": "search",
                     *         "agent_id": "crawler"
                     *       },
                     *       "action": "tool.call",
                     *       "resource": "web_search",
                     *       "policy": "search-team",
                     *       "rule_id": "web-only",
                     *       "reason": "web tools only",
                     *       "estimated_cost_usd": 1,
                     *       "spent_usd": 1,
                     *       "approval_id": null,
                     *       "error": null,
                     *       "ended": "completed",
                     *       "acknowledged_at": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["PostOpsAnswer"];
                };
            };
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *       "op_home": "a op home",
                     *       "state": "pending",
                     *       "registered_at": "2026-01-31T12:00:00Z",
                     *       "updated_at": "2026-01-31T12:00:00Z",
                     *       "agent": {
                     *         "org_id": "acme",
                     *         "team_id": "search",
                     *         "agent_id": "crawler"
                     *       },
                     *       "action": "tool.call",
                     *       "resource": "web_search",
                     *       "policy": "search-team",
                     *       "rule_id": "web-only",
                     *       "reason": "web tools only",
                     *       "estimated_cost_usd": 1,
                     *       "spent_usd": 1,
                     *       "approval_id": null,
                     *       "error": null,
                     *       "ended": "completed",
                     *       "acknowledged_at": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["PostOpsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_ops_id: {
        parameters: {
            query?: {
                org_id?: string;
                op_home?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *       "op_home": "a op home",
                     *       "state": "pending",
                     *       "registered_at": "2026-01-31T12:00:00Z",
                     *       "updated_at": "2026-01-31T12:00:00Z",
                     *       "agent": {
                     *         "org_id": "acme",
                     *         "team_id": "search",
                     *         "agent_id": "crawler"
                     *       },
                     *       "action": "tool.call",
                     *       "resource": "web_search",
                     *       "policy": "search-team",
                     *       "rule_id": "web-only",
                     *       "reason": "web tools only",
                     *       "estimated_cost_usd": 1,
                     *       "spent_usd": 1,
                     *       "approval_id": null,
                     *       "error": null,
                     *       "ended": "completed",
                     *       "acknowledged_at": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["GetOpsIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_ops_id_pause: {
        parameters: {
            query?: {
                org_id?: string;
                op_home?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *       "op_home": "a op home",
                     *       "state": "pending",
                     *       "registered_at": "2026-01-31T12:00:00Z",
                     *       "updated_at": "2026-01-31T12:00:00Z",
                     *       "agent": {
                     *         "org_id": "acme",
                     *         "team_id": "search",
                     *         "agent_id": "crawler"
                     *       },
                     *       "action": "tool.call",
                     *       "resource": "web_search",
                     *       "policy": "search-team",
                     *       "rule_id": "web-only",
                     *       "reason": "web tools only",
                     *       "estimated_cost_usd": 1,
                     *       "spent_usd": 1,
                     *       "approval_id": null,
                     *       "error": null,
                     *       "ended": "completed",
                     *       "acknowledged_at": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["PostOpsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_ops_id_resume: {
        parameters: {
            query?: {
                org_id?: string;
                op_home?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *       "op_home": "a op home",
                     *       "state": "pending",
                     *       "registered_at": "2026-01-31T12:00:00Z",
                     *       "updated_at": "2026-01-31T12:00:00Z",
                     *       "agent": {
                     *         "org_id": "acme",
                     *         "team_id": "search",
                     *         "agent_id": "crawler"
                     *       },
                     *       "action": "tool.call",
                     *       "resource": "web_search",
                     *       "policy": "search-team",
                     *       "rule_id": "web-only",
                     *       "reason": "web tools only",
                     *       "estimated_cost_usd": 1,
                     *       "spent_usd": 1,
                     *       "approval_id": null,
                     *       "error": null,
                     *       "ended": "completed",
                     *       "acknowledged_at": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["PostOpsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_ops_id_terminate: {
        parameters: {
            query?: {
                org_id?: string;
                op_home?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *       "op_home": "a op home",
                     *       "state": "pending",
                     *       "registered_at": "2026-01-31T12:00:00Z",
                     *       "updated_at": "2026-01-31T12:00:00Z",
                     *       "agent": {
                     *         "org_id": "acme",
                     *         "team_id": "search",
                     *         "agent_id": "crawler"
                     *       },
                     *       "action": "tool.call",
                     *       "resource": "web_search",
                     *       "policy": "search-team",
                     *       "rule_id": "web-only",
                     *       "reason": "web tools only",
                     *       "estimated_cost_usd": 1,
                     *       "spent_usd": 1,
                     *       "approval_id": null,
                     *       "error": null,
                     *       "ended": "completed",
                     *       "acknowledged_at": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["PostOpsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_ops_id_complete: {
        parameters: {
            query?: {
                org_id?: string;
                op_home?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "cost_usd": 1,
                 *       "model": "a model",
                 *       "provider": "a provider",
                 *       "input_tokens": 1,
                 *       "output_tokens": 1,
                 *       "cache_read_tokens": 1,
                 *       "cache_write_tokens": 1,
                 *       "outcome": "OUTCOME_SUCCESS",
                 *       "error": "a error"
                 *     }
                 */
                "application/json": components["schemas"]["PostOpsIdCompleteRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *       "op_home": "a op home",
                     *       "state": "pending",
                     *       "registered_at": "2026-01-31T12:00:00Z",
                     *       "updated_at": "2026-01-31T12:00:00Z",
                     *       "agent": {
                     *         "org_id": "acme",
                     *         "team_id": "search",
                     *         "agent_id": "crawler"
                     *       },
                     *       "action": "tool.call",
                     *       "resource": "web_search",
                     *       "policy": "search-team",
                     *       "rule_id": "web-only",
                     *       "reason": "web tools only",
                     *       "estimated_cost_usd": 1,
                     *       "spent_usd": 1,
                     *       "approval_id": null,
                     *       "error": null,
                     *       "ended": "completed",
                     *       "acknowledged_at": "2026-01-31T12:00:00Z",
                     *       "cost_usd": 1
                     *     }
                     */
                    "application/json": components["schemas"]["PostOpsIdCompleteAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_agents: {
        parameters: {
            query?: {
                org_id?: string;
                team_id?: string;
                agent_id?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agents": [
                     *         {
                     *           "org_id": "acme",
                     *           "team_id": "search",
                     *           "agent_id": "crawler",
                     *           "parent": "acme/search/lead",
                     *           "registered_at": "2026-01-31T12:00:00Z",
                     *           "last_seen_at": "2026-01-31T12:00:00Z",
                     *           "active_ops": 1
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetAgentsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_agents: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agent": {
                 *         "org_id": "acme",
                 *         "team_id": "search",
                 *         "agent_id": "crawler"
                 *       },
                 *       "credential_token": "svcagent_a-token-of-32-characters-or-more",
                 *       "parent": {
                 *         "org_id": "acme",
                 *         "team_id": "search",
                 *         "agent_id": "crawler"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["PostAgentsRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agent": {
                     *         "org_id": "acme",
                     *         "team_id": "search",
                     *         "agent_id": "crawler",
                     *         "parent": "acme/search/lead",
                     *         "registered_at": "2026-01-31T12:00:00Z",
                     *         "last_seen_at": "2026-01-31T12:00:00Z",
                     *         "active_ops": 1
                     *       },
                     *       "rotated": false,
                     *       "credential_token": "svcagent_a-token-of-32-characters-or-more"
                     *     }
                     */
                    "application/json": components["schemas"]["PostAgentsAnswer"];
                };
            };
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agent": {
                     *         "org_id": "acme",
                     *         "team_id": "search",
                     *         "agent_id": "crawler",
                     *         "parent": "acme/search/lead",
                     *         "registered_at": "2026-01-31T12:00:00Z",
                     *         "last_seen_at": "2026-01-31T12:00:00Z",
                     *         "active_ops": 1
                     *       },
                     *       "rotated": false,
                     *       "credential_token": "svcagent_a-token-of-32-characters-or-more"
                     *     }
                     */
                    "application/json": components["schemas"]["PostAgentsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_agents_self: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agent": {
                     *         "org_id": "acme",
                     *         "team_id": "search",
                     *         "agent_id": "crawler"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["GetAgentsSelfAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_agents_self_refusals: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "action": "tool.call",
                 *       "resource": "web_search",
                 *       "reason": "web tools only"
                 *     }
                 */
                "application/json": components["schemas"]["PostAgentsSelfRefusalsRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "reason": "web tools only",
                     *       "audit_id": 1
                     *     }
                     */
                    "application/json": components["schemas"]["PostAgentsSelfRefusalsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    delete_agents_org_team_agent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                org: string;
                team: string;
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_usage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agent": {
                 *         "org_id": "acme",
                 *         "team_id": "search",
                 *         "agent_id": "crawler"
                 *       },
                 *       "cost_usd": 1,
                 *       "model": "a model",
                 *       "provider": "a provider",
                 *       "input_tokens": 1,
                 *       "output_tokens": 1,
                 *       "cache_read_tokens": 1,
                 *       "cache_write_tokens": 1,
                 *       "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                 *       "usage_id": "a usage id"
                 *     }
                 */
                "application/json": components["schemas"]["PostUsageRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok",
                     *       "cost_usd": 1
                     *     }
                     */
                    "application/json": components["schemas"]["PostUsageAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_budgets: {
        parameters: {
            query?: {
                org_id?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "budgets": [
                     *         {
                     *           "tier": "global",
                     *           "org_id": "acme",
                     *           "team_id": "search",
                     *           "agent_id": "crawler",
                     *           "daily": {
                     *             "spent_usd": 1,
                     *             "limit_usd": null,
                     *             "period_start": "2026-01-31T12:00:00Z",
                     *             "reset": "2026-01-31T12:00:00Z"
                     *           },
                     *           "monthly": {
                     *             "spent_usd": 1,
                     *             "limit_usd": null,
                     *             "period_start": "2026-01-31T12:00:00Z",
                     *             "reset": "2026-01-31T12:00:00Z"
                     *           },
                     *           "reserved_usd": 1
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetBudgetsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_limits: {
        parameters: {
            query?: {
                org_id?: string;
                per?: "session" | "lineage" | "agent" | "team" | "org";
                policy?: string;
                limit?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "limits": [
                     *         {
                     *           "policy": "search-team",
                     *           "id": "a id",
                     *           "per": "session",
                     *           "key": "a key",
                     *           "unit": "calls",
                     *           "used": 1,
                     *           "max": 1,
                     *           "org_id": "acme",
                     *           "reserved": 1,
                     *           "raised": 1,
                     *           "resets_at": "2026-01-31T12:00:00Z"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetLimitsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_prices: {
        parameters: {
            query?: {
                model?: string;
                provider?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "model": "a model",
                     *       "provider": null,
                     *       "input_mtok": 1,
                     *       "output_mtok": 1,
                     *       "cache_read_mtok": 1,
                     *       "cache_write_mtok": 1,
                     *       "source": "file"
                     *     }
                     */
                    "application/json": components["schemas"]["GetPricesAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_halts: {
        parameters: {
            query?: {
                active?: boolean;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "halts": [
                     *         {
                     *           "id": "a id",
                     *           "scope": "a scope",
                     *           "mode": "terminate",
                     *           "actions": [
                     *             "a actions"
                     *           ],
                     *           "reason": "web tools only",
                     *           "created_by": "a created by",
                     *           "created_at": "2026-01-31T12:00:00Z",
                     *           "expires_at": "2026-01-31T12:00:00Z",
                     *           "released_at": "2026-01-31T12:00:00Z",
                     *           "released_by": null,
                     *           "release_reason": null
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetHaltsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_halts: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "scope": "a scope",
                 *       "reason": "web tools only",
                 *       "mode": "terminate",
                 *       "actions": [
                 *         "a actions"
                 *       ],
                 *       "expires_at": "2026-01-31T12:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["PostHaltsRequest"];
            };
        };
        responses: {
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "halt": {
                     *         "id": "a id",
                     *         "scope": "a scope",
                     *         "mode": "terminate",
                     *         "actions": [
                     *           "a actions"
                     *         ],
                     *         "reason": "web tools only",
                     *         "created_by": "a created by",
                     *         "created_at": "2026-01-31T12:00:00Z",
                     *         "expires_at": "2026-01-31T12:00:00Z",
                     *         "released_at": "2026-01-31T12:00:00Z",
                     *         "released_by": null,
                     *         "release_reason": null
                     *       },
                     *       "ops_affected": 1,
                     *       "agents_matched": 1,
                     *       "nearest_scope": null
                     *     }
                     */
                    "application/json": components["schemas"]["PostHaltsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_halts_id_release: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "web tools only"
                 *     }
                 */
                "application/json": components["schemas"]["PostHaltsIdReleaseRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "halt": {
                     *         "id": "a id",
                     *         "scope": "a scope",
                     *         "mode": "terminate",
                     *         "actions": [
                     *           "a actions"
                     *         ],
                     *         "reason": "web tools only",
                     *         "created_by": "a created by",
                     *         "created_at": "2026-01-31T12:00:00Z",
                     *         "expires_at": "2026-01-31T12:00:00Z",
                     *         "released_at": "2026-01-31T12:00:00Z",
                     *         "released_by": null,
                     *         "release_reason": null
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["PostHaltsIdReleaseAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_approvals: {
        parameters: {
            query?: {
                org_id?: string;
                state?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "approvals": [
                     *         {
                     *           "id": "a id",
                     *           "kind": "action",
                     *           "state": "pending",
                     *           "digest": "a digest",
                     *           "agent": {
                     *             "org_id": "acme",
                     *             "team_id": "search",
                     *             "agent_id": "crawler"
                     *           },
                     *           "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *           "op_ids": [
                     *             "a op ids"
                     *           ],
                     *           "action": "tool.call",
                     *           "resource": "web_search",
                     *           "attributes": null,
                     *           "estimated_cost_usd": 1,
                     *           "policy": "search-team",
                     *           "rule_id": "web-only",
                     *           "reason": "web tools only",
                     *           "limit": {
                     *             "policy": "search-team",
                     *             "id": "a id",
                     *             "per": "session",
                     *             "key": "a key",
                     *             "unit": "calls",
                     *             "used": 1,
                     *             "max": 1
                     *           },
                     *           "step": null,
                     *           "requested_by": [
                     *             "a requested by"
                     *           ],
                     *           "requested_at": "2026-01-31T12:00:00Z",
                     *           "expires_at": "2026-01-31T12:00:00Z",
                     *           "frozen_at": "2026-01-31T12:00:00Z",
                     *           "min": 1,
                     *           "approvers": [
                     *             "a approvers"
                     *           ],
                     *           "valid_secs": null,
                     *           "decisions": [
                     *             {
                     *               "decision": "approve",
                     *               "by": "a by",
                     *               "reason": "web tools only",
                     *               "at": "2026-01-31T12:00:00Z"
                     *             }
                     *           ],
                     *           "used_by": [
                     *             "a used by"
                     *           ],
                     *           "cancel_reason": null,
                     *           "changed_at": "2026-01-31T12:00:00Z"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetApprovalsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_approvals_id: {
        parameters: {
            query?: {
                wait?: number;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "approval": {
                     *         "id": "a id",
                     *         "kind": "action",
                     *         "state": "pending",
                     *         "digest": "a digest",
                     *         "agent": {
                     *           "org_id": "acme",
                     *           "team_id": "search",
                     *           "agent_id": "crawler"
                     *         },
                     *         "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *         "op_ids": [
                     *           "a op ids"
                     *         ],
                     *         "action": "tool.call",
                     *         "resource": "web_search",
                     *         "attributes": null,
                     *         "estimated_cost_usd": 1,
                     *         "policy": "search-team",
                     *         "rule_id": "web-only",
                     *         "reason": "web tools only",
                     *         "limit": {
                     *           "policy": "search-team",
                     *           "id": "a id",
                     *           "per": "session",
                     *           "key": "a key",
                     *           "unit": "calls",
                     *           "used": 1,
                     *           "max": 1
                     *         },
                     *         "step": null,
                     *         "requested_by": [
                     *           "a requested by"
                     *         ],
                     *         "requested_at": "2026-01-31T12:00:00Z",
                     *         "expires_at": "2026-01-31T12:00:00Z",
                     *         "frozen_at": "2026-01-31T12:00:00Z",
                     *         "min": 1,
                     *         "approvers": [
                     *           "a approvers"
                     *         ],
                     *         "valid_secs": null,
                     *         "decisions": [
                     *           {
                     *             "decision": "approve",
                     *             "by": "a by",
                     *             "reason": "web tools only",
                     *             "at": "2026-01-31T12:00:00Z"
                     *           }
                     *         ],
                     *         "used_by": [
                     *           "a used by"
                     *         ],
                     *         "cancel_reason": null,
                     *         "changed_at": "2026-01-31T12:00:00Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["GetApprovalsIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_approvals_id_approve: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "web tools only"
                 *     }
                 */
                "application/json": components["schemas"]["PostHaltsIdReleaseRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "approval": {
                     *         "id": "a id",
                     *         "kind": "action",
                     *         "state": "pending",
                     *         "digest": "a digest",
                     *         "agent": {
                     *           "org_id": "acme",
                     *           "team_id": "search",
                     *           "agent_id": "crawler"
                     *         },
                     *         "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *         "op_ids": [
                     *           "a op ids"
                     *         ],
                     *         "action": "tool.call",
                     *         "resource": "web_search",
                     *         "attributes": null,
                     *         "estimated_cost_usd": 1,
                     *         "policy": "search-team",
                     *         "rule_id": "web-only",
                     *         "reason": "web tools only",
                     *         "limit": {
                     *           "policy": "search-team",
                     *           "id": "a id",
                     *           "per": "session",
                     *           "key": "a key",
                     *           "unit": "calls",
                     *           "used": 1,
                     *           "max": 1
                     *         },
                     *         "step": null,
                     *         "requested_by": [
                     *           "a requested by"
                     *         ],
                     *         "requested_at": "2026-01-31T12:00:00Z",
                     *         "expires_at": "2026-01-31T12:00:00Z",
                     *         "frozen_at": "2026-01-31T12:00:00Z",
                     *         "min": 1,
                     *         "approvers": [
                     *           "a approvers"
                     *         ],
                     *         "valid_secs": null,
                     *         "decisions": [
                     *           {
                     *             "decision": "approve",
                     *             "by": "a by",
                     *             "reason": "web tools only",
                     *             "at": "2026-01-31T12:00:00Z"
                     *           }
                     *         ],
                     *         "used_by": [
                     *           "a used by"
                     *         ],
                     *         "cancel_reason": null,
                     *         "changed_at": "2026-01-31T12:00:00Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["GetApprovalsIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_approvals_id_deny: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "web tools only"
                 *     }
                 */
                "application/json": components["schemas"]["PostHaltsIdReleaseRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "approval": {
                     *         "id": "a id",
                     *         "kind": "action",
                     *         "state": "pending",
                     *         "digest": "a digest",
                     *         "agent": {
                     *           "org_id": "acme",
                     *           "team_id": "search",
                     *           "agent_id": "crawler"
                     *         },
                     *         "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *         "op_ids": [
                     *           "a op ids"
                     *         ],
                     *         "action": "tool.call",
                     *         "resource": "web_search",
                     *         "attributes": null,
                     *         "estimated_cost_usd": 1,
                     *         "policy": "search-team",
                     *         "rule_id": "web-only",
                     *         "reason": "web tools only",
                     *         "limit": {
                     *           "policy": "search-team",
                     *           "id": "a id",
                     *           "per": "session",
                     *           "key": "a key",
                     *           "unit": "calls",
                     *           "used": 1,
                     *           "max": 1
                     *         },
                     *         "step": null,
                     *         "requested_by": [
                     *           "a requested by"
                     *         ],
                     *         "requested_at": "2026-01-31T12:00:00Z",
                     *         "expires_at": "2026-01-31T12:00:00Z",
                     *         "frozen_at": "2026-01-31T12:00:00Z",
                     *         "min": 1,
                     *         "approvers": [
                     *           "a approvers"
                     *         ],
                     *         "valid_secs": null,
                     *         "decisions": [
                     *           {
                     *             "decision": "approve",
                     *             "by": "a by",
                     *             "reason": "web tools only",
                     *             "at": "2026-01-31T12:00:00Z"
                     *           }
                     *         ],
                     *         "used_by": [
                     *           "a used by"
                     *         ],
                     *         "cancel_reason": null,
                     *         "changed_at": "2026-01-31T12:00:00Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["GetApprovalsIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_approvals_id_cancel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "approval": {
                     *         "id": "a id",
                     *         "kind": "action",
                     *         "state": "pending",
                     *         "digest": "a digest",
                     *         "agent": {
                     *           "org_id": "acme",
                     *           "team_id": "search",
                     *           "agent_id": "crawler"
                     *         },
                     *         "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *         "op_ids": [
                     *           "a op ids"
                     *         ],
                     *         "action": "tool.call",
                     *         "resource": "web_search",
                     *         "attributes": null,
                     *         "estimated_cost_usd": 1,
                     *         "policy": "search-team",
                     *         "rule_id": "web-only",
                     *         "reason": "web tools only",
                     *         "limit": {
                     *           "policy": "search-team",
                     *           "id": "a id",
                     *           "per": "session",
                     *           "key": "a key",
                     *           "unit": "calls",
                     *           "used": 1,
                     *           "max": 1
                     *         },
                     *         "step": null,
                     *         "requested_by": [
                     *           "a requested by"
                     *         ],
                     *         "requested_at": "2026-01-31T12:00:00Z",
                     *         "expires_at": "2026-01-31T12:00:00Z",
                     *         "frozen_at": "2026-01-31T12:00:00Z",
                     *         "min": 1,
                     *         "approvers": [
                     *           "a approvers"
                     *         ],
                     *         "valid_secs": null,
                     *         "decisions": [
                     *           {
                     *             "decision": "approve",
                     *             "by": "a by",
                     *             "reason": "web tools only",
                     *             "at": "2026-01-31T12:00:00Z"
                     *           }
                     *         ],
                     *         "used_by": [
                     *           "a used by"
                     *         ],
                     *         "cancel_reason": null,
                     *         "changed_at": "2026-01-31T12:00:00Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["GetApprovalsIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_webhooks: {
        parameters: {
            query?: {
                org_id?: string;
                made_by?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "webhooks": [
                     *         {
                     *           "id": "a id",
                     *           "url": "a url",
                     *           "events": [
                     *             "approval.requested"
                     *           ],
                     *           "org_id": "acme",
                     *           "created_by": "a created by",
                     *           "created_at": "2026-01-31T12:00:00Z",
                     *           "waiting": 1,
                     *           "dropped": 1,
                     *           "failing_since": "2026-01-31T12:00:00Z",
                     *           "last_error": null,
                     *           "disabled_at": "2026-01-31T12:00:00Z"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetWebhooksAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_webhooks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "a url",
                 *       "events": [
                 *         "approval.requested"
                 *       ],
                 *       "org_id": "acme"
                 *     }
                 */
                "application/json": components["schemas"]["PostWebhooksRequest"];
            };
        };
        responses: {
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "a id",
                     *       "url": "a url",
                     *       "events": [
                     *         "approval.requested"
                     *       ],
                     *       "org_id": "acme",
                     *       "created_by": "a created by",
                     *       "created_at": "2026-01-31T12:00:00Z",
                     *       "waiting": 1,
                     *       "dropped": 1,
                     *       "failing_since": "2026-01-31T12:00:00Z",
                     *       "last_error": null,
                     *       "disabled_at": "2026-01-31T12:00:00Z",
                     *       "secret": "a secret"
                     *     }
                     */
                    "application/json": components["schemas"]["PostWebhooksAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_webhooks_id: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "webhook": {
                     *         "id": "a id",
                     *         "url": "a url",
                     *         "events": [
                     *           "approval.requested"
                     *         ],
                     *         "org_id": "acme",
                     *         "created_by": "a created by",
                     *         "created_at": "2026-01-31T12:00:00Z",
                     *         "waiting": 1,
                     *         "dropped": 1,
                     *         "failing_since": "2026-01-31T12:00:00Z",
                     *         "last_error": null,
                     *         "disabled_at": "2026-01-31T12:00:00Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["GetWebhooksIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    delete_webhooks_id: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_webhooks_id_take_over: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "webhook": {
                     *         "id": "a id",
                     *         "url": "a url",
                     *         "events": [
                     *           "approval.requested"
                     *         ],
                     *         "org_id": "acme",
                     *         "created_by": "a created by",
                     *         "created_at": "2026-01-31T12:00:00Z",
                     *         "waiting": 1,
                     *         "dropped": 1,
                     *         "failing_since": "2026-01-31T12:00:00Z",
                     *         "last_error": null,
                     *         "disabled_at": "2026-01-31T12:00:00Z"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["GetWebhooksIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_webhooks_id_test: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "message_id": "a message id"
                     *     }
                     */
                    "application/json": components["schemas"]["PostWebhooksIdTestAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_policies: {
        parameters: {
            query?: {
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": "a version",
                     *       "loaded_at": "2026-01-31T12:00:00Z",
                     *       "reload_error": {
                     *         "at": "2026-01-31T12:00:00Z",
                     *         "by": "a by",
                     *         "reason": "web tools only",
                     *         "problems": [
                     *           "a problems"
                     *         ]
                     *       },
                     *       "documents": [
                     *         {
                     *           "name": "a name",
                     *           "scope": "a scope",
                     *           "rule_count": 1,
                     *           "source": "a source"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetPoliciesAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_policies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "files": [
                 *         {
                 *           "name": "a name",
                 *           "text": "a text"
                 *         }
                 *       ],
                 *       "version": null
                 *     }
                 */
                "application/json": components["schemas"]["PostPoliciesRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": "a version",
                     *       "documents": 1,
                     *       "changed": false,
                     *       "warnings": [
                     *         "a warnings"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PostPoliciesAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_policies_rules: {
        parameters: {
            query?: {
                policy?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": "a version",
                     *       "rules": [
                     *         {
                     *           "policy": "search-team",
                     *           "scope": "a scope",
                     *           "source": "a source",
                     *           "id": "a id",
                     *           "effect": "allow",
                     *           "actions": [
                     *             "a actions"
                     *           ],
                     *           "resources": [
                     *             "a resources"
                     *           ],
                     *           "when": null,
                     *           "reason": "web tools only",
                     *           "remedy": null,
                     *           "approval": {
                     *             "min": 1,
                     *             "expires_secs": 1,
                     *             "valid_secs": null,
                     *             "approvers": [
                     *               "a approvers"
                     *             ]
                     *           },
                     *           "obligations": [
                     *             {
                     *               "id": "a id",
                     *               "type": "a type",
                     *               "properties": {}
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetPoliciesRulesAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_policies_explain: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agent": {
                 *         "org_id": "acme",
                 *         "team_id": "search",
                 *         "agent_id": "crawler"
                 *       },
                 *       "caller": {
                 *         "org_id": "acme",
                 *         "team_id": "search",
                 *         "agent_id": "crawler"
                 *       },
                 *       "action": "tool.call",
                 *       "resource": "web_search",
                 *       "attributes": {},
                 *       "estimated_cost_usd": 1,
                 *       "trace_id": "4bf92f3577b34da6",
                 *       "files": [
                 *         {
                 *           "name": "a name",
                 *           "text": "a text"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["PostPoliciesExplainRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": "a version",
                     *       "decision": {
                     *         "decision": "allow",
                     *         "policy": "search-team",
                     *         "rule_id": "web-only",
                     *         "reason": "web tools only",
                     *         "remedy": null,
                     *         "approval": {
                     *           "min": 1,
                     *           "expires_secs": 1,
                     *           "valid_secs": null,
                     *           "approvers": [
                     *             "a approvers"
                     *           ]
                     *         },
                     *         "obligations": [
                     *           {
                     *             "id": "a id",
                     *             "type": "a type",
                     *             "properties": {}
                     *           }
                     *         ]
                     *       },
                     *       "overruled_by": {
                     *         "cause": "halt",
                     *         "reason": "web tools only"
                     *       },
                     *       "documents": [
                     *         {
                     *           "name": "a name",
                     *           "scope": "a scope",
                     *           "source": "a source",
                     *           "rules": [
                     *             {
                     *               "id": "a id",
                     *               "effect": "allow",
                     *               "outcome": "action-differs",
                     *               "detail": "a detail",
                     *               "decided": false
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PostPoliciesExplainAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_policies_reload: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": "a version",
                     *       "documents": 1,
                     *       "changed": false,
                     *       "warnings": [
                     *         "a warnings"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PostPoliciesAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_policies_versions: {
        parameters: {
            query?: {
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "versions": [
                     *         {
                     *           "version": "a version",
                     *           "state": "in_force",
                     *           "since": "2026-01-31T12:00:00Z",
                     *           "until": "2026-01-31T12:00:00Z",
                     *           "by": "a by",
                     *           "documents": 1,
                     *           "rules": 1
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetPoliciesVersionsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_policies_versions_version: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                version: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": "a version",
                     *       "state": "in_force",
                     *       "since": "2026-01-31T12:00:00Z",
                     *       "until": "2026-01-31T12:00:00Z",
                     *       "by": "a by",
                     *       "documents": 1,
                     *       "rules": 1,
                     *       "files": [
                     *         {
                     *           "name": "a name",
                     *           "text": "a text"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["GetPoliciesVersionsVersionAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_policies_diff: {
        parameters: {
            query?: {
                from?: string;
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": "a from",
                     *       "to": "a to",
                     *       "changes": [
                     *         {
                     *           "kind": "added",
                     *           "document": "a document",
                     *           "scope": "a scope",
                     *           "rule_id": "web-only",
                     *           "before": {},
                     *           "after": {}
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["GetPoliciesDiffAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_policies_shadow: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": "a version",
                     *       "since": "2026-01-31T12:00:00Z",
                     *       "expires_at": "2026-01-31T12:00:00Z",
                     *       "by": "a by",
                     *       "checks": 1,
                     *       "differing": 1,
                     *       "errors": 1,
                     *       "changes": [
                     *         {
                     *           "from": "allow",
                     *           "to": "allow",
                     *           "policy": "search-team",
                     *           "rule_id": "web-only",
                     *           "count": 1
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["GetPoliciesShadowAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    put_policies_shadow: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "files": [
                 *         {
                 *           "name": "a name",
                 *           "text": "a text"
                 *         }
                 *       ],
                 *       "expires_in_secs": 1
                 *     }
                 */
                "application/json": components["schemas"]["PutPoliciesShadowRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": "a version",
                     *       "documents": 1,
                     *       "expires_at": "2026-01-31T12:00:00Z",
                     *       "warnings": [
                     *         "a warnings"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PutPoliciesShadowAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    delete_policies_shadow: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_policies_replay: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "files": [
                 *         {
                 *           "name": "a name",
                 *           "text": "a text"
                 *         }
                 *       ],
                 *       "version": null,
                 *       "since": "2026-01-31T12:00:00Z",
                 *       "until": "2026-01-31T12:00:00Z",
                 *       "org_id": "acme",
                 *       "team_id": "search",
                 *       "agent_id": "crawler"
                 *     }
                 */
                "application/json": components["schemas"]["PostPoliciesReplayRequest"];
            };
        };
        responses: {
            /** @description Text */
            200: {
                headers: {
                    "svc-incomplete": components["headers"]["svc-incomplete"];
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_auth_ws_ticket: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ticket": "a ticket",
                     *       "expires_in": 1
                     *     }
                     */
                    "application/json": components["schemas"]["PostAuthWsTicketAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_stream: {
        parameters: {
            query?: {
                org_id?: string;
                types?: string;
                snapshot?: boolean;
                lineage?: boolean;
                ticket?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            426: components["responses"]["UpgradeRequired"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_logs: {
        parameters: {
            query?: {
                org_id?: string;
                team_id?: string;
                agent_id?: string;
                event_type?: string;
                decision?: "allow" | "deny";
                op_id?: string;
                actor?: string;
                action?: string;
                resource?: string;
                policy?: string;
                rule_id?: string;
                cause?: "rule" | "no_rule" | "condition_error" | "budget" | "credential" | "operation_state" | "halt" | "approval" | "obligation" | "unrecorded" | "limit";
                shadow?: "differs";
                since?: string;
                until?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "entries": [
                     *         {
                     *           "id": 1,
                     *           "timestamp": "2026-01-31T12:00:00Z",
                     *           "event_type": "ActionAllowed",
                     *           "lineage": {
                     *             "org_id": "acme",
                     *             "team_id": "search",
                     *             "agent_id": "crawler"
                     *           },
                     *           "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *           "decision": "allow",
                     *           "reason": "web tools only",
                     *           "policy": "search-team",
                     *           "rule_id": "web-only",
                     *           "cause": "rule",
                     *           "actor": "key:2f6c9a",
                     *           "payload": {},
                     *           "gateway": "gateway-1",
                     *           "prev_hash": "a prev hash",
                     *           "hash": "6dae92a9a7cb5ed6a6b6b7ec57c5e6ca2ac81a4e8c7e7f6ce8b13a4d9d6c9a0f"
                     *         }
                     *       ],
                     *       "next_cursor": null,
                     *       "incomplete": [
                     *         "a incomplete"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["GetLogsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_logs_export: {
        parameters: {
            query?: {
                org_id?: string;
                team_id?: string;
                agent_id?: string;
                event_type?: string;
                decision?: "allow" | "deny";
                op_id?: string;
                actor?: string;
                action?: string;
                resource?: string;
                policy?: string;
                rule_id?: string;
                cause?: "rule" | "no_rule" | "condition_error" | "budget" | "credential" | "operation_state" | "halt" | "approval" | "obligation" | "unrecorded" | "limit";
                shadow?: "differs";
                since?: string;
                until?: string;
                format?: "ndjson" | "csv";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Text */
            200: {
                headers: {
                    "Content-Disposition": components["headers"]["Content-Disposition"];
                    "svc-incomplete": components["headers"]["svc-incomplete"];
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/csv": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_changes: {
        parameters: {
            query?: {
                org_id?: string;
                since?: string;
                until?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "changes": [
                     *         {
                     *           "at": "2026-01-31T12:00:00Z",
                     *           "kind": "policy",
                     *           "summary": "a summary",
                     *           "by": "a by",
                     *           "audit_id": 1,
                     *           "details": {}
                     *         }
                     *       ],
                     *       "next_cursor": null,
                     *       "incomplete": [
                     *         "a incomplete"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["GetChangesAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_audit_witness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "id": 1,
                 *       "hash": "6dae92a9a7cb5ed6a6b6b7ec57c5e6ca2ac81a4e8c7e7f6ce8b13a4d9d6c9a0f",
                 *       "timestamp": "2026-01-31T12:00:00Z",
                 *       "signature": "b3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDb3xDAg",
                 *       "first_id": 1,
                 *       "gateway": "gateway-1",
                 *       "peers": [
                 *         {
                 *           "gateway": "gateway-1",
                 *           "id": 1,
                 *           "hash": "6dae92a9a7cb5ed6a6b6b7ec57c5e6ca2ac81a4e8c7e7f6ce8b13a4d9d6c9a0f"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["PostAuditWitnessRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": 1,
                     *       "hash": "6dae92a9a7cb5ed6a6b6b7ec57c5e6ca2ac81a4e8c7e7f6ce8b13a4d9d6c9a0f"
                     *     }
                     */
                    "application/json": components["schemas"]["PostAuditWitnessAnswer"];
                };
            };
            /** @description The answer */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": 1,
                     *       "hash": "6dae92a9a7cb5ed6a6b6b7ec57c5e6ca2ac81a4e8c7e7f6ce8b13a4d9d6c9a0f"
                     *     }
                     */
                    "application/json": components["schemas"]["PostAuditWitnessAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_audit_sinks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "sinks": [
                     *         {
                     *           "name": "a name",
                     *           "type": "file",
                     *           "format": "native",
                     *           "place": "a place",
                     *           "sent_id": 1,
                     *           "lag_entries": 1,
                     *           "sent_entries": 1,
                     *           "lost_entries": 1,
                     *           "failures": 1,
                     *           "trouble": null
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["GetAuditSinksAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_audit_sinks_name_test: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": false,
                     *       "trouble": null
                     *     }
                     */
                    "application/json": components["schemas"]["PostAuditSinksNameTestAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_audit_sinks_name_replay: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "from": 1
                 *     }
                 */
                "application/json": components["schemas"]["PostAuditSinksNameReplayRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": 1
                     *     }
                     */
                    "application/json": components["schemas"]["PostAuditSinksNameReplayAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_cluster: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "members": [
                     *         {
                     *           "name": "a name",
                     *           "run": "a run",
                     *           "state": "live",
                     *           "version": "a version",
                     *           "lease_until": "2026-01-31T12:00:00Z",
                     *           "skew_ms": 1,
                     *           "policy_version": null,
                     *           "audit_head": {
                     *             "id": 1,
                     *             "hash": "6dae92a9a7cb5ed6a6b6b7ec57c5e6ca2ac81a4e8c7e7f6ce8b13a4d9d6c9a0f"
                     *           },
                     *           "bus": "connected",
                     *           "unconfirmed": 1,
                     *           "stranded_usd": 1
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["GetClusterAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_cluster_forget: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "a name",
                 *       "unspent": "charge"
                 *     }
                 */
                "application/json": components["schemas"]["PostClusterForgetRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "unspent_usd": 1
                     *     }
                     */
                    "application/json": components["schemas"]["PostClusterForgetAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_stats: {
        parameters: {
            query?: {
                window?: "15m" | "1h" | "24h" | "7d" | "30d";
                org_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "window": "15m",
                     *       "from": "2026-01-31T12:00:00Z",
                     *       "to": "2026-01-31T12:00:00Z",
                     *       "checks": {
                     *         "allow": 1,
                     *         "deny": 1,
                     *         "pending": 1
                     *       },
                     *       "denies": {
                     *         "by_cause": [
                     *           {
                     *             "cause": "rule",
                     *             "count": 1
                     *           }
                     *         ],
                     *         "by_rule": [
                     *           {
                     *             "policy": "search-team",
                     *             "rule_id": "web-only",
                     *             "count": 1
                     *           }
                     *         ],
                     *         "by_agent": [
                     *           {
                     *             "org_id": "acme",
                     *             "team_id": "search",
                     *             "agent_id": "crawler",
                     *             "count": 1
                     *           }
                     *         ],
                     *         "by_org": [
                     *           {
                     *             "org_id": "acme",
                     *             "count": 1
                     *           }
                     *         ]
                     *       },
                     *       "orgs": [
                     *         {
                     *           "org_id": "acme",
                     *           "allow": 1,
                     *           "deny": 1,
                     *           "pending": 1,
                     *           "spend_usd": 1
                     *         }
                     *       ],
                     *       "spend_usd": 1,
                     *       "latency_ms": {
                     *         "p50": null,
                     *         "p95": null,
                     *         "p99": null
                     *       },
                     *       "top": {
                     *         "rules": [
                     *           {
                     *             "policy": "search-team",
                     *             "rule_id": "web-only",
                     *             "allow": 1,
                     *             "deny": 1,
                     *             "pending": 1
                     *           }
                     *         ],
                     *         "agents": [
                     *           {
                     *             "org_id": "acme",
                     *             "team_id": "search",
                     *             "agent_id": "crawler",
                     *             "checks": 1,
                     *             "denies": 1
                     *           }
                     *         ],
                     *         "spenders": [
                     *           {
                     *             "org_id": "acme",
                     *             "team_id": "search",
                     *             "agent_id": "crawler",
                     *             "spend_usd": 1
                     *           }
                     *         ]
                     *       },
                     *       "minutes": [
                     *         {
                     *           "at": "2026-01-31T12:00:00Z",
                     *           "allow": 1,
                     *           "deny": 1,
                     *           "pending": 1,
                     *           "spend_usd": 1,
                     *           "latency_ms": {
                     *             "p50": null,
                     *             "p95": null,
                     *             "p99": null
                     *           }
                     *         }
                     *       ],
                     *       "hours": [
                     *         {
                     *           "at": "2026-01-31T12:00:00Z",
                     *           "allow": 1,
                     *           "deny": 1,
                     *           "pending": 1,
                     *           "spend_usd": 1,
                     *           "latency_ms": {
                     *             "p50": null,
                     *             "p95": null,
                     *             "p99": null
                     *           }
                     *         }
                     *       ],
                     *       "incomplete": false
                     *     }
                     */
                    "application/json": components["schemas"]["GetStatsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_topology_overview: {
        parameters: {
            query?: {
                org_id?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "org_count": 1,
                     *       "team_count": 1,
                     *       "agent_count": 1,
                     *       "teams": [
                     *         {
                     *           "team_id": "search",
                     *           "org_id": "acme",
                     *           "agent_count": 1,
                     *           "agents_seen": 1,
                     *           "active_ops": 1,
                     *           "ops": {
                     *             "pending": 1,
                     *             "running": 1,
                     *             "paused": 1,
                     *             "completing": 1,
                     *             "terminated": 1
                     *           }
                     *         }
                     *       ],
                     *       "agents": [
                     *         {
                     *           "org_id": "acme",
                     *           "team_id": "search",
                     *           "agent_id": "crawler",
                     *           "parent": "acme/search/lead",
                     *           "registered_at": "2026-01-31T12:00:00Z",
                     *           "last_seen_at": "2026-01-31T12:00:00Z",
                     *           "active_ops": 1
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetTopologyOverviewAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_topology_tree: {
        parameters: {
            query?: {
                org_id?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "orgs": [
                     *         {
                     *           "org_id": "acme",
                     *           "teams": [
                     *             {
                     *               "team_id": "search",
                     *               "agents": [
                     *                 {
                     *                   "org_id": "acme",
                     *                   "team_id": "search",
                     *                   "agent_id": "crawler",
                     *                   "parent": "acme/search/lead",
                     *                   "registered_at": "2026-01-31T12:00:00Z",
                     *                   "last_seen_at": "2026-01-31T12:00:00Z",
                     *                   "active_ops": 1,
                     *                   "truncated": false,
                     *                   "children": []
                     *                 }
                     *               ]
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetTopologyTreeAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_topology_stats: {
        parameters: {
            query?: {
                org_id?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "org_count": 1,
                     *       "team_count": 1,
                     *       "agent_count": 1,
                     *       "agents_seen": 1,
                     *       "active_ops": 1,
                     *       "ops": {
                     *         "pending": 1,
                     *         "running": 1,
                     *         "paused": 1,
                     *         "completing": 1,
                     *         "terminated": 1
                     *       },
                     *       "ops_ttl_secs": 1,
                     *       "groups": [
                     *         {
                     *           "org_id": "acme",
                     *           "agent_count": 1,
                     *           "agents_seen": 1,
                     *           "active_ops": 1,
                     *           "ops": {
                     *             "pending": 1,
                     *             "running": 1,
                     *             "paused": 1,
                     *             "completing": 1,
                     *             "terminated": 1
                     *           }
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetTopologyStatsAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_topology_team_team_id: {
        parameters: {
            query?: {
                org_id?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path: {
                team_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "teams": [
                     *         {
                     *           "team_id": "search",
                     *           "org_id": "acme",
                     *           "agent_count": 1,
                     *           "agents_seen": 1,
                     *           "active_ops": 1,
                     *           "ops": {
                     *             "pending": 1,
                     *             "running": 1,
                     *             "paused": 1,
                     *             "completing": 1,
                     *             "terminated": 1
                     *           }
                     *         }
                     *       ],
                     *       "agents": [
                     *         {
                     *           "org_id": "acme",
                     *           "team_id": "search",
                     *           "agent_id": "crawler",
                     *           "parent": "acme/search/lead",
                     *           "registered_at": "2026-01-31T12:00:00Z",
                     *           "last_seen_at": "2026-01-31T12:00:00Z",
                     *           "active_ops": 1
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetTopologyTeamTeamIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_topology_lineage_agent_id: {
        parameters: {
            query?: {
                org_id?: string;
                per_page?: number;
                cursor?: string;
            };
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "lineages": [
                     *         {
                     *           "agent": {
                     *             "org_id": "acme",
                     *             "team_id": "search",
                     *             "agent_id": "crawler",
                     *             "parent": "acme/search/lead",
                     *             "registered_at": "2026-01-31T12:00:00Z",
                     *             "last_seen_at": "2026-01-31T12:00:00Z",
                     *             "active_ops": 1
                     *           },
                     *           "ancestors": [
                     *             {
                     *               "org_id": "acme",
                     *               "team_id": "search",
                     *               "agent_id": "crawler",
                     *               "parent": "acme/search/lead",
                     *               "registered_at": "2026-01-31T12:00:00Z",
                     *               "last_seen_at": "2026-01-31T12:00:00Z",
                     *               "active_ops": 1
                     *             }
                     *           ],
                     *           "descendants": [
                     *             {
                     *               "org_id": "acme",
                     *               "team_id": "search",
                     *               "agent_id": "crawler",
                     *               "parent": "acme/search/lead",
                     *               "registered_at": "2026-01-31T12:00:00Z",
                     *               "last_seen_at": "2026-01-31T12:00:00Z",
                     *               "active_ops": 1,
                     *               "depth": 1
                     *             }
                     *           ],
                     *           "truncated": false
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["GetTopologyLineageAgentIdAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_access_v1_evaluation_root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "subject": {
                 *         "type": "a type",
                 *         "id": "a id",
                 *         "properties": {}
                 *       },
                 *       "action": {
                 *         "name": "a name",
                 *         "properties": {}
                 *       },
                 *       "resource": {
                 *         "type": "a type",
                 *         "id": "a id",
                 *         "properties": {}
                 *       },
                 *       "context": {
                 *         "trace_id": "4bf92f3577b34da6",
                 *         "span_id": "00f067aa0ba902b7",
                 *         "supported_obligations": [
                 *           "a supported obligations"
                 *         ]
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["PostAccessV1EvaluationRootRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "decision": false,
                     *       "context": {
                     *         "reason": "web tools only",
                     *         "cause": "rule",
                     *         "policy": "search-team",
                     *         "rule_id": "web-only",
                     *         "audit_id": 1,
                     *         "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *         "approval_id": "a approval id",
                     *         "remedy": "a remedy",
                     *         "obligations": [
                     *           {
                     *             "id": "a id",
                     *             "type": "a type",
                     *             "properties": {}
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["PostAccessV1EvaluationRootAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_access_v1_evaluations_root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "subject": {
                 *         "type": "a type",
                 *         "id": "a id",
                 *         "properties": {}
                 *       },
                 *       "action": {
                 *         "name": "a name",
                 *         "properties": {}
                 *       },
                 *       "resource": {
                 *         "type": "a type",
                 *         "id": "a id",
                 *         "properties": {}
                 *       },
                 *       "context": {
                 *         "trace_id": "4bf92f3577b34da6",
                 *         "span_id": "00f067aa0ba902b7",
                 *         "supported_obligations": [
                 *           "a supported obligations"
                 *         ]
                 *       },
                 *       "options": {
                 *         "evaluations_semantic": "execute_all"
                 *       },
                 *       "evaluations": [
                 *         null
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["PostAccessV1EvaluationsRootRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "evaluations": [
                     *         {
                     *           "decision": false,
                     *           "context": {
                     *             "reason": "web tools only",
                     *             "cause": "rule",
                     *             "policy": "search-team",
                     *             "rule_id": "web-only",
                     *             "audit_id": 1,
                     *             "op_id": "4bf92f3577b34da6:00f067aa0ba902b7"
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PostAccessV1EvaluationsRootAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_well_known_authzen_configuration_root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "policy_decision_point": "a policy decision point",
                     *       "access_evaluation_endpoint": "a access evaluation endpoint",
                     *       "access_evaluations_endpoint": "a access evaluations endpoint",
                     *       "supported_obligations": [
                     *         "a supported obligations"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["GetWellKnownAuthzenConfigurationRootAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            default: components["responses"]["Problem"];
        };
    };
    post_v1_data_svc_authz_decision_root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "input": {
                 *         "action": "tool.call",
                 *         "resource": "web_search",
                 *         "attributes": {},
                 *         "trace_id": "4bf92f3577b34da6",
                 *         "span_id": "00f067aa0ba902b7",
                 *         "supported_obligations": [
                 *           "a supported obligations"
                 *         ]
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["PostV1DataSvcAuthzDecisionRootRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "result": {
                     *         "decision": "allow",
                     *         "reason": "web tools only",
                     *         "cause": "rule",
                     *         "policy": "search-team",
                     *         "rule_id": "web-only",
                     *         "audit_id": 1,
                     *         "op_id": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *         "approval_id": "a approval id",
                     *         "remedy": "a remedy",
                     *         "obligations": [
                     *           {
                     *             "id": "a id",
                     *             "type": "a type",
                     *             "properties": {}
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["PostV1DataSvcAuthzDecisionRootAnswer"];
                };
            };
            /** @description Bad Request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "code": "invalid_argument",
                     *       "message": "a message"
                     *     }
                     */
                    "application/json": components["schemas"]["PostV1DataSvcAuthzDecisionRootFailure"];
                };
            };
            /** @description Unauthorized */
            401: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "code": "invalid_argument",
                     *       "message": "a message"
                     *     }
                     */
                    "application/json": components["schemas"]["PostV1DataSvcAuthzDecisionRootFailure"];
                };
            };
            /** @description Forbidden */
            403: {
                headers: {
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "code": "invalid_argument",
                     *       "message": "a message"
                     *     }
                     */
                    "application/json": components["schemas"]["PostV1DataSvcAuthzDecisionRootFailure"];
                };
            };
            /** @description Content Too Large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "code": "invalid_argument",
                     *       "message": "a message"
                     *     }
                     */
                    "application/json": components["schemas"]["PostV1DataSvcAuthzDecisionRootFailure"];
                };
            };
            /** @description Service Unavailable */
            503: {
                headers: {
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "code": "invalid_argument",
                     *       "message": "a message"
                     *     }
                     */
                    "application/json": components["schemas"]["PostV1DataSvcAuthzDecisionRootFailure"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    post_hooks_claude_code: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["PostHooksClaudeCodeRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["PostHooksClaudeCodeAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_hooks_codex: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["PostHooksClaudeCodeRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["PostHooksClaudeCodeAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_hooks_cursor: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["PostHooksClaudeCodeRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["PostHooksClaudeCodeAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_hooks_copilot: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["PostHooksClaudeCodeRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["PostHooksClaudeCodeAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_hooks_gemini: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["PostHooksClaudeCodeRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["PostHooksClaudeCodeAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    post_v1_agent_hooks_intercept_root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "spec": "agent-hooks/0.1",
                 *       "interception_point": "agent_startup",
                 *       "agent": {
                 *         "id": "a id",
                 *         "framework": "a framework"
                 *       },
                 *       "session": {
                 *         "id": "a id"
                 *       },
                 *       "tool_call": {
                 *         "id": "a id",
                 *         "name": "a name",
                 *         "args": {}
                 *       },
                 *       "tool_result": {
                 *         "is_error": false
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["PostV1AgentHooksInterceptRootRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "decision": "allow",
                     *       "warnings": [
                     *         {
                     *           "reason": "web tools only",
                     *           "message": "a message"
                     *         }
                     *       ],
                     *       "evidence": {
                     *         "verification_pointers": {}
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["PostV1AgentHooksInterceptRootAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            413: components["responses"]["ContentTooLarge"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_healthz_root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok"
                     *     }
                     */
                    "application/json": components["schemas"]["GetHealthzRootAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            default: components["responses"]["Problem"];
        };
    };
    get_readyz_root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ready",
                     *       "audit": "writable",
                     *       "database": "not_configured",
                     *       "audit_witness": "unreachable",
                     *       "store": "unwritable",
                     *       "cluster": "reachable",
                     *       "bus": "unreachable"
                     *     }
                     */
                    "application/json": components["schemas"]["GetReadyzRootAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            503: components["responses"]["ServiceUnavailable"];
            default: components["responses"]["Problem"];
        };
    };
    get_metrics_root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Text */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            400: components["responses"]["BadRequest"];
            default: components["responses"]["Problem"];
        };
    };
    get_openapi_json_root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example null */
                    "application/json": unknown;
                };
            };
            400: components["responses"]["BadRequest"];
            default: components["responses"]["Problem"];
        };
    };
    CheckAction: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agent": {
                 *         "orgId": "acme",
                 *         "teamId": "search",
                 *         "agentId": "crawler"
                 *       },
                 *       "credentialToken": "svcagent_a-token-of-32-characters-or-more",
                 *       "traceId": "4bf92f3577b34da6",
                 *       "spanId": "00f067aa0ba902b7",
                 *       "action": "tool.call",
                 *       "resource": "web_search",
                 *       "attributes": {},
                 *       "estimatedCostUsd": 1,
                 *       "caller": {
                 *         "orgId": "acme",
                 *         "teamId": "search",
                 *         "agentId": "crawler"
                 *       },
                 *       "dryRun": false,
                 *       "correlationId": "a correlationId",
                 *       "supportedObligations": [
                 *         "a supportedObligations"
                 *       ],
                 *       "opHome": "a opHome"
                 *     }
                 */
                "application/json": components["schemas"]["CheckActionRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "decision": "DECISION_UNSPECIFIED",
                     *       "reason": "web tools only",
                     *       "policy": "search-team",
                     *       "ruleId": "web-only",
                     *       "opId": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *       "opState": "OP_STATE_UNSPECIFIED",
                     *       "auditId": "1",
                     *       "correlationId": "a correlationId",
                     *       "cause": "DECISION_CAUSE_UNSPECIFIED",
                     *       "tier": "BUDGET_TIER_UNSPECIFIED",
                     *       "period": "BUDGET_PERIOD_UNSPECIFIED",
                     *       "resetsAt": "2026-01-31T12:00:00Z",
                     *       "approvalId": "a approvalId",
                     *       "obligations": [
                     *         {
                     *           "id": "a id",
                     *           "type": "a type",
                     *           "properties": {}
                     *         }
                     *       ],
                     *       "opHome": "a opHome",
                     *       "remedy": "a remedy"
                     *     }
                     */
                    "application/json": components["schemas"]["CheckActionResponse"];
                };
            };
            400: components["responses"]["Connect"];
            401: components["responses"]["Connect"];
            403: components["responses"]["Connect"];
            404: components["responses"]["Connect"];
            413: components["responses"]["Connect"];
            415: components["responses"]["Connect"];
            429: components["responses"]["Connect"];
            503: components["responses"]["Connect"];
            default: components["responses"]["Connect"];
        };
    };
    BatchCheckActions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "requests": [
                 *         {
                 *           "agent": {},
                 *           "credentialToken": "svcagent_a-token-of-32-characters-or-more",
                 *           "traceId": "4bf92f3577b34da6",
                 *           "spanId": "00f067aa0ba902b7",
                 *           "action": "tool.call",
                 *           "resource": "web_search",
                 *           "attributes": {},
                 *           "estimatedCostUsd": 1,
                 *           "caller": {},
                 *           "dryRun": false,
                 *           "correlationId": "a correlationId",
                 *           "supportedObligations": [
                 *             "a supportedObligations"
                 *           ],
                 *           "opHome": "a opHome"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["BatchCheckActionsRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "responses": [
                     *         {
                     *           "decision": "DECISION_UNSPECIFIED",
                     *           "reason": "web tools only",
                     *           "policy": "search-team",
                     *           "ruleId": "web-only",
                     *           "opId": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *           "opState": "OP_STATE_UNSPECIFIED",
                     *           "auditId": "1",
                     *           "correlationId": "a correlationId",
                     *           "error": {},
                     *           "cause": "DECISION_CAUSE_UNSPECIFIED",
                     *           "tier": "BUDGET_TIER_UNSPECIFIED",
                     *           "period": "BUDGET_PERIOD_UNSPECIFIED",
                     *           "resetsAt": "2026-01-31T12:00:00Z",
                     *           "approvalId": "a approvalId",
                     *           "obligations": [
                     *             {}
                     *           ],
                     *           "opHome": "a opHome",
                     *           "remedy": "a remedy"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["BatchCheckActionsResponse"];
                };
            };
            400: components["responses"]["Connect"];
            401: components["responses"]["Connect"];
            403: components["responses"]["Connect"];
            404: components["responses"]["Connect"];
            413: components["responses"]["Connect"];
            415: components["responses"]["Connect"];
            429: components["responses"]["Connect"];
            503: components["responses"]["Connect"];
            default: components["responses"]["Connect"];
        };
    };
    RegisterAgent: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agent": {
                 *         "orgId": "acme",
                 *         "teamId": "search",
                 *         "agentId": "crawler"
                 *       },
                 *       "credentialToken": "svcagent_a-token-of-32-characters-or-more",
                 *       "parent": {
                 *         "orgId": "acme",
                 *         "teamId": "search",
                 *         "agentId": "crawler"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RegisterAgentRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agent": {
                     *         "orgId": "acme",
                     *         "teamId": "search",
                     *         "agentId": "crawler"
                     *       },
                     *       "credentialToken": "svcagent_a-token-of-32-characters-or-more",
                     *       "rotated": false
                     *     }
                     */
                    "application/json": components["schemas"]["RegisterAgentResponse"];
                };
            };
            400: components["responses"]["Connect"];
            401: components["responses"]["Connect"];
            403: components["responses"]["Connect"];
            404: components["responses"]["Connect"];
            413: components["responses"]["Connect"];
            415: components["responses"]["Connect"];
            429: components["responses"]["Connect"];
            503: components["responses"]["Connect"];
            default: components["responses"]["Connect"];
        };
    };
    DeregisterAgent: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agent": {
                 *         "orgId": "acme",
                 *         "teamId": "search",
                 *         "agentId": "crawler"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DeregisterAgentRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["DeregisterAgentResponse"];
                };
            };
            400: components["responses"]["Connect"];
            401: components["responses"]["Connect"];
            403: components["responses"]["Connect"];
            404: components["responses"]["Connect"];
            413: components["responses"]["Connect"];
            415: components["responses"]["Connect"];
            429: components["responses"]["Connect"];
            503: components["responses"]["Connect"];
            default: components["responses"]["Connect"];
        };
    };
    CompleteOp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agent": {
                 *         "orgId": "acme",
                 *         "teamId": "search",
                 *         "agentId": "crawler"
                 *       },
                 *       "credentialToken": "svcagent_a-token-of-32-characters-or-more",
                 *       "opId": "4bf92f3577b34da6:00f067aa0ba902b7",
                 *       "costUsd": 1,
                 *       "outcome": "OUTCOME_UNSPECIFIED",
                 *       "error": "a error",
                 *       "opHome": "a opHome",
                 *       "model": "a model",
                 *       "provider": "a provider",
                 *       "inputTokens": "1",
                 *       "outputTokens": "1",
                 *       "cacheReadTokens": "1",
                 *       "cacheWriteTokens": "1"
                 *     }
                 */
                "application/json": components["schemas"]["CompleteOpRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "opId": "4bf92f3577b34da6:00f067aa0ba902b7",
                     *       "opState": "OP_STATE_UNSPECIFIED",
                     *       "costUsd": 1
                     *     }
                     */
                    "application/json": components["schemas"]["CompleteOpResponse"];
                };
            };
            400: components["responses"]["Connect"];
            401: components["responses"]["Connect"];
            403: components["responses"]["Connect"];
            404: components["responses"]["Connect"];
            413: components["responses"]["Connect"];
            415: components["responses"]["Connect"];
            429: components["responses"]["Connect"];
            503: components["responses"]["Connect"];
            default: components["responses"]["Connect"];
        };
    };
    RecordUsage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agent": {
                 *         "orgId": "acme",
                 *         "teamId": "search",
                 *         "agentId": "crawler"
                 *       },
                 *       "credentialToken": "svcagent_a-token-of-32-characters-or-more",
                 *       "costUsd": 1,
                 *       "opId": "4bf92f3577b34da6:00f067aa0ba902b7",
                 *       "usageId": "a usageId",
                 *       "opHome": "a opHome",
                 *       "model": "a model",
                 *       "provider": "a provider",
                 *       "inputTokens": "1",
                 *       "outputTokens": "1",
                 *       "cacheReadTokens": "1",
                 *       "cacheWriteTokens": "1"
                 *     }
                 */
                "application/json": components["schemas"]["RecordUsageRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "BUDGET_STATUS_UNSPECIFIED",
                     *       "tier": "BUDGET_TIER_UNSPECIFIED",
                     *       "period": "BUDGET_PERIOD_UNSPECIFIED",
                     *       "costUsd": 1
                     *     }
                     */
                    "application/json": components["schemas"]["RecordUsageResponse"];
                };
            };
            400: components["responses"]["Connect"];
            401: components["responses"]["Connect"];
            403: components["responses"]["Connect"];
            404: components["responses"]["Connect"];
            413: components["responses"]["Connect"];
            415: components["responses"]["Connect"];
            429: components["responses"]["Connect"];
            503: components["responses"]["Connect"];
            default: components["responses"]["Connect"];
        };
    };
    AckOpControl: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agent": {
                 *         "orgId": "acme",
                 *         "teamId": "search",
                 *         "agentId": "crawler"
                 *       },
                 *       "credentialToken": "svcagent_a-token-of-32-characters-or-more",
                 *       "opId": "4bf92f3577b34da6:00f067aa0ba902b7",
                 *       "sequence": "1",
                 *       "opHome": "a opHome"
                 *     }
                 */
                "application/json": components["schemas"]["AckOpControlRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /** @example {} */
                    "application/json": components["schemas"]["AckOpControlResponse"];
                };
            };
            400: components["responses"]["Connect"];
            401: components["responses"]["Connect"];
            403: components["responses"]["Connect"];
            404: components["responses"]["Connect"];
            413: components["responses"]["Connect"];
            415: components["responses"]["Connect"];
            429: components["responses"]["Connect"];
            503: components["responses"]["Connect"];
            default: components["responses"]["Connect"];
        };
    };
    WaitApproval: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agent": {
                 *         "orgId": "acme",
                 *         "teamId": "search",
                 *         "agentId": "crawler"
                 *       },
                 *       "credentialToken": "svcagent_a-token-of-32-characters-or-more",
                 *       "approvalId": "a approvalId"
                 *     }
                 */
                "application/json": components["schemas"]["WaitApprovalRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "approvalId": "a approvalId",
                     *       "state": "APPROVAL_STATE_UNSPECIFIED",
                     *       "reason": "web tools only",
                     *       "expiresAt": "2026-01-31T12:00:00Z"
                     *     }
                     */
                    "application/json": components["schemas"]["WaitApprovalResponse"];
                };
            };
            400: components["responses"]["Connect"];
            401: components["responses"]["Connect"];
            403: components["responses"]["Connect"];
            404: components["responses"]["Connect"];
            413: components["responses"]["Connect"];
            415: components["responses"]["Connect"];
            429: components["responses"]["Connect"];
            503: components["responses"]["Connect"];
            default: components["responses"]["Connect"];
        };
    };
    CancelApproval: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agent": {
                 *         "orgId": "acme",
                 *         "teamId": "search",
                 *         "agentId": "crawler"
                 *       },
                 *       "credentialToken": "svcagent_a-token-of-32-characters-or-more",
                 *       "approvalId": "a approvalId"
                 *     }
                 */
                "application/json": components["schemas"]["CancelApprovalRequest"];
            };
        };
        responses: {
            /** @description The answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "approvalId": "a approvalId",
                     *       "state": "APPROVAL_STATE_UNSPECIFIED"
                     *     }
                     */
                    "application/json": components["schemas"]["CancelApprovalResponse"];
                };
            };
            400: components["responses"]["Connect"];
            401: components["responses"]["Connect"];
            403: components["responses"]["Connect"];
            404: components["responses"]["Connect"];
            413: components["responses"]["Connect"];
            415: components["responses"]["Connect"];
            429: components["responses"]["Connect"];
            503: components["responses"]["Connect"];
            default: components["responses"]["Connect"];
        };
    };
}
