"""The budget of a month: the alarm topic gets a message when the service exceeds it, or will.

By the tag `deployment`, which must be activated once for the account's cost allocation, in the billing console: until then
the budget counts nothing. Costs come with a delay of some hours. Budgets and dashboards belong to the account and not to a
region, so their names contain the region.
"""

from __future__ import annotations

from aws_cdk import Aws
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.principals import PUBLISH, conditions
from infra.settings import Settings

TAG = "deployment"
LIMITS = (("ACTUAL", 80), ("FORECASTED", 100))
"""Percent of the budget."""


def budget(scope: Construct, *, settings: Settings, topic: sns.Topic) -> budgets.CfnBudget:
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            sid="BudgetPublishes",
            principals=[iam.ServicePrincipal("budgets.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions=conditions("budgets", PUBLISH, StringEquals={"aws:SourceAccount": Aws.ACCOUNT_ID}),
        )
    )
    return budgets.CfnBudget(
        scope,
        "Budget",
        budget=budgets.CfnBudget.BudgetDataProperty(
            budget_name=f"{settings.name}-{Aws.REGION}",
            budget_type="COST",
            time_unit="MONTHLY",
            budget_limit=budgets.CfnBudget.SpendProperty(amount=settings.budget_usd_month, unit="USD"),
            cost_filters={"TagKeyValue": [f"user:{TAG}${settings.name}"], "Region": [Aws.REGION]},
        ),
        notifications_with_subscribers=[_tell(kind, percent, topic) for kind, percent in LIMITS],
    )


def _tell(kind: str, percent: int, topic: sns.ITopic) -> budgets.CfnBudget.NotificationWithSubscribersProperty:
    return budgets.CfnBudget.NotificationWithSubscribersProperty(
        notification=budgets.CfnBudget.NotificationProperty(
            notification_type=kind, comparison_operator="GREATER_THAN", threshold=percent, threshold_type="PERCENTAGE"
        ),
        subscribers=[budgets.CfnBudget.SubscriberProperty(subscription_type="SNS", address=topic.topic_arn)],
    )
