"""Signs people in by OpenID Connect: Keycloak, Entra ID, and other providers."""
