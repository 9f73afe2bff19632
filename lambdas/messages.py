"""A message to a person, by the alarm topic: as text, and for chat in the form that Amazon Q (once AWS Chatbot) shows. Amazon
Q ignores plain text. https://docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html"""

from __future__ import annotations

import json
from typing import Any


def send_message(sns: Any, topic: str, subject: str, text: str) -> None:
    content = {"textType": "client-markdown", "title": subject, "description": f"```\n{text}\n```"}
    chat = {"version": "1.0", "source": "custom", "content": content}
    # Chat subscribes by https.
    message = json.dumps({"default": text, "https": json.dumps(chat)})
    sns.publish(TopicArn=topic, Subject=subject[:100], Message=message, MessageStructure="json")
